import { createOpenAI } from '@ai-sdk/openai';
import { generateText } from 'ai';

const [question, user] = process.argv.slice(2);
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const answer = await generateText({
  model: openai('gpt-5'),
  system: 'Be brief.',
  prompt: question,
  providerOptions: user ? { openai: { user } } : undefined,
});
console.log(answer.text);
