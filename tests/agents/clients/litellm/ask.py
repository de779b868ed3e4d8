import os
import sys

import litellm

question, *user = sys.argv[1:]
answer = litellm.completion(
    model="openai/gpt-5",
    api_base=os.environ["OPENAI_BASE_URL"],
    messages=[{"role": "user", "content": question}],
    user=user[0] if user else None,
)
print(answer.choices[0].message.content)
