import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { keyring } from '../../lib/seal.ts';
import { tokens } from '../../lib/tokens.ts';
import { flowTokenPurpose, flowTokens, hostedUrl, outcomeSeconds } from './token.ts';

const key = randomBytes(32);
const at = (seconds: number, purpose = flowTokenPurpose) =>
  tokens(
    () => keyring([key]),
    () => seconds * 1000,
    purpose,
  );
const pass = (seconds = 0) => flowTokens(at(seconds));
const flow = { connectionId: 'ma_one', flowId: 'flow_one', projectId: 'proj_one', keyId: 'key_one' };
const endsAt = new Date(1200_000);
const refused = /has expired or is not for this connection/;

describe('a code', () => {
  test('names its flow until the flow’s time is over, and no two codes are the same', () => {
    const codes = [pass().code(flow, endsAt), pass().code(flow, endsAt)] as const;
    const opened = codes.map((code) => pass(1199).openCode('ma_one', code));
    expect(opened).toEqual([
      { ...flow, codeId: expect.any(String) },
      { ...flow, codeId: expect.any(String) },
    ]);
    expect(opened[0]!.codeId).not.toBe(opened[1]!.codeId);
    expect(pass(1200).openCode('ma_one', codes[0])).toBeUndefined();
  });

  test('is of no use for another connection, nor in the place of the token', () => {
    const code = pass().code(flow, endsAt);
    expect(pass().openCode('ma_other', code)).toBeUndefined();
    expect(() => pass().open('ma_one', code)).toThrow(refused);
  });
});

describe('a token', () => {
  test('is for its flow, and outlives it long enough to read the outcome', () => {
    const token = pass().token(flow, endsAt);
    expect(pass().open('ma_one', token)).toEqual(flow);
    expect(pass(1200 + outcomeSeconds - 1).open('ma_one', token)).toEqual(flow);
    expect(() => pass(1200 + outcomeSeconds).open('ma_one', token)).toThrow(refused);
  });

  test('is of no use for another connection, in the place of a code, or signed for another purpose', () => {
    const token = pass().token(flow, endsAt);
    expect(() => pass().open('ma_other', token)).toThrow(refused);
    expect(pass().openCode('ma_one', token)).toBeUndefined();
    const ofSession = at(0, 'session tokens').sign({
      sub: 'ma_one',
      aud: 'flow',
      exp: 9999,
      flow: 'flow_one',
      project: 'p',
      key: 'k',
    });
    expect(() => pass().open('ma_one', ofSession)).toThrow(refused);
    for (const junk of ['', 'a.b.c', '..', 'sk_1234']) expect(() => pass().open('ma_one', junk)).toThrow(refused);
  });

  test('is distinguished from a key by its form', () => {
    expect(pass().looksLikeOne(pass().token(flow, endsAt))).toBe(true);
    expect(pass().looksLikeOne('sk_0123456789abcdef')).toBe(false);
  });
});

test('the address of the page carries the code, and nothing that needs quoting', () => {
  const code = pass().code(flow, endsAt);
  const url = new URL(hostedUrl('https://corral.example/base', 'ma_one', code));
  expect(url.pathname).toBe('/base/auth/hosted/ma_one');
  expect(url.searchParams.get('code')).toBe(code);
});
