import { describe, expect, test } from 'vitest';
import { answering, questionOf } from './answering.ts';

const asked = (changes: object = {}) => ({
  flow_step: 'AWAITING_INPUT' as const,
  fields: [{ id: 'user', ref: 'user', type: 'identifier' as const, label: 'User' }],
  choices: [],
  website_error: null,
  interaction_id: 'run.3',
  ...changes,
});

const refusal = (code: string) => Object.assign(new Error(code), { code });
const now = async () => {};

/** A login that accepts one id of its question. */
const login = (name: string, code = 'stale_interaction') => {
  const heard: unknown[] = [];
  const submit = async (interaction: string | undefined) => {
    heard.push(interaction);
    if (interaction !== name) throw refusal(code);
    return 'taken';
  };
  return { heard, submit };
};

describe('an answer', () => {
  test('is given again under the new name of the same question', async () => {
    const { heard, submit } = login('run.4');
    const read = async () => asked({ interaction_id: 'run.4' });
    expect(await answering(asked(), submit, read, now)).toBe('taken');
    expect(heard).toEqual(['run.3', 'run.4']);
  });

  test.each([
    ['another question', { fields: [], interaction_id: 'run.4' }],
    ['the same question after a wrong answer', { website_error: 'Wrong.', interaction_id: 'run.4' }],
    ['a login that asks nothing', { flow_step: 'SUBMITTING' as const }],
  ])('is not given to %s', async (_name, changes) => {
    const { heard, submit } = login('run.4');
    await expect(answering(asked(), submit, async () => asked(changes), now)).rejects.toThrow('stale_interaction');
    expect(heard).toEqual(['run.3']);
  });

  test('is tried a few times, and only when the login was about to ask', async () => {
    const moving = login('never', 'flow_not_waiting');
    await expect(answering(asked(), moving.submit, async () => asked(), now)).rejects.toThrow('flow_not_waiting');
    expect(moving.heard).toHaveLength(6);
    const over = login('never', 'no_active_flow');
    await expect(answering(asked(), over.submit, async () => asked(), now)).rejects.toThrow('no_active_flow');
    expect(over.heard).toHaveLength(1);
  });
});

test('a question is the same under another name', () => {
  expect(questionOf(asked({ interaction_id: 'run.9' }))).toBe(questionOf(asked()));
  expect(questionOf(asked({ flow_step: 'DISCOVERING' }))).toBeUndefined();
});
