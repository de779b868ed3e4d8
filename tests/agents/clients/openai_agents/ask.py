import sys

from agents import Agent, ModelSettings, Runner, set_tracing_disabled

set_tracing_disabled(True)  # traces go to OpenAI, whatever the base URL

question, *user = sys.argv[1:]
settings = ModelSettings(extra_body={"user": user[0]} if user else None)
agent = Agent(name="Assistant", instructions="Be brief.", model="gpt-5", model_settings=settings)
print(Runner.run_sync(agent, question).final_output)
