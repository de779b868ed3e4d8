import sys

from pydantic_ai import Agent

question, *user = sys.argv[1:]
agent = Agent("openai:gpt-5", instructions="Be brief.")
print(agent.run_sync(question, model_settings={"openai_user": user[0]} if user else None).output)
