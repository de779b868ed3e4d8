import sys

from langchain_openai import ChatOpenAI

question, *user = sys.argv[1:]
model = ChatOpenAI(model="gpt-5", model_kwargs={"user": user[0]} if user else {})
print(model.invoke([("system", "Be brief."), ("user", question)]).text)
