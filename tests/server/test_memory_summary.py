"""The summary over HTTP: what is known of a user, in short, by project."""

from tests.provider import ScriptedProvider, chat
from tests.server.calling import call, say
from tests.server.serving import StartServer

PATH = "/v1/memory/summary"
CITED = "You do.\n<memory-citation>\n42\n</memory-citation>"


def test_it_has_what_is_general_and_what_is_of_the_project(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(embedding_engine="none")
    url, service = running.url, running.service
    service.set_fact("ann", "city", "Oslo")
    for cwd, opening in (("", "In no folder"), ("/a", "Of the first"), ("/b", "Of the second")):
        said = [{"role": "user", "content": opening}]
        said += [{"role": "assistant", "content": f"Answer {number}"} for number in range(5)]
        service.remember("ann", said, f"about {opening}", cwd=cwd)
    service.transcripts.poll()
    found = call(url, "GET", f"{PATH}?user=ann&project=/a").json
    assert found["text"].startswith("v1\n\n## Profile\n\n- city: Oslo\n\n## Recent conversations\n\n- ")
    openings = ("In no folder", "Of the first", "Of the second")
    assert [one in found["text"] for one in openings] == [True, True, False]
    assert "Oslo" not in found["handed_on"]
    assert found["handed_on"].endswith("Of the first\n</memory-summary>")
    assert call(url, "GET", f"{PATH}?user=bob").json == {"text": "", "handed_on": ""}
    assert call(url, "GET", f"{PATH}?user=ann&project={'x' * 5000}").status == 400


def test_what_a_model_cites_reaches_the_client_and_is_not_stored(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(embedding_engine="none")
    provider.default = chat(CITED)
    answer = say(running.url, "Do I have a bike?", user="ann")
    assert answer.json["choices"][0]["message"]["content"] == CITED
    assert [text for _, text in running.said("ann")] == ["Do I have a bike?", "You do."]
