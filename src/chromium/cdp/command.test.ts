import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { seededRandom, TRICKY, trickyText, trickyValue, type Random } from '../../../test/support/random.ts';
import { readCommand, scanCommand, type Command, type Fault } from './command.ts';

/** Reads all pieces. */
function readWhole(data: Buffer): Command | Fault {
  const command = readCommand(data);
  return 'next' in command ? scanCommand(data) : command;
}

const read = (text: string) => readWhole(Buffer.from(text));

test('reads the fields in any order and spacing', () => {
  const command = read(' {\n"params" : {"a":[1,{"b":"}"}]} ,\t"sessionId":"S","method":"A.b", "id": 7 }\r\n');
  expect(command).toMatchObject({ id: 7, method: 'A.b', sessionId: 'S' });
  expect('params' in command && JSON.stringify(command.params)).toBe('{"a":[1,{"b":"}"}]}');
});

test('compares names and methods as Chromium will: unescaped', () => {
  expect(read('{"\\u0069d":1,"m\\u0065thod":"Browser\\u002eclose","session\\u0049d":"\\u0053"}')).toMatchObject({
    id: 1,
    method: 'Browser.close',
    sessionId: 'S',
  });
});

test.each([
  ['nothing', '', -32700],
  ['a word', 'garbage', -32700],
  ['half a message', '{"id":1,"method":"A.b"', -32700],
  ['two messages', '{"id":1,"method":"A.b"}{"id":2,"method":"A.b"}', -32700],
  ['a list', '[]', -32600],
  ['a number', '5', -32600],
  ['no id', '{"method":"A.b"}', -32600],
  ['an id that is text', '{"id":"1","method":"A.b"}', -32600],
  ['a fraction for an id', '{"id":1.5,"method":"A.b"}', -32600],
  ['an id beyond 32 bits', '{"id":2147483648,"method":"A.b"}', -32600],
  ['no method', '{"id":1}', -32600],
  ['a method that is not text', '{"id":1,"method":{}}', -32600],
  ['a session that is not text', '{"id":1,"method":"A.b","sessionId":null}', -32600],
  ['params that are not an object', '{"id":1,"method":"A.b","params":[]}', -32600],
  ['a field of no meaning', '{"id":1,"method":"A.b","__proto__":{"sessionId":"S"}}', -32600],
  ['a comma too many', '{"id":1,"method":"A.b",}', -32700],
  ['a comment', '{"id":1,/**/"method":"A.b"}', -32700],
  ['an invalid escape', '{"id":1,"method":"A.b","params":{"a":"\\x41"}}', -32700],
  ['deeper than Chromium reads', `{"id":1,"method":"A.b","params":{"a":${'['.repeat(300)}${']'.repeat(300)}}}`, -32700],
])('refuses %s', (_what, text, code) => {
  expect(readWhole(Buffer.from(text))).toMatchObject({ code });
});

test('accepts control characters in strings, as Chromium does', () => {
  expect(read('{"id":1,"method":"A\n\\u002eb"}')).toMatchObject({ method: 'A\n.b' });
});

test('refuses bytes that are not UTF-8', () => {
  expect(readWhole(Buffer.from('{"id":1,"method":"\xff"}', 'latin1'))).toMatchObject({ code: -32700 });
});

test('a number too large for anyone is refused where bytes are passed on', () => {
  expect(scanCommand(Buffer.from('{"id":1,"method":"A.b","params":{"a":1e999}}'))).toMatchObject({ code: -32700 });
});

test('a name that comes twice is refused where bytes are passed on, and read once where the value is', () => {
  const twice = '{"id":1,"method":"A.b","\\u006dethod":"Browser.close","sessionId":"A","sessionId":"B"}';
  expect(scanCommand(Buffer.from(twice))).toMatchObject({ code: -32700 });
  expect(read(twice)).toMatchObject({ method: 'Browser.close', sessionId: 'B' });
});

test('agrees with JSON.parse on a hundred thousand messages, whole and broken', { timeout: 400_000 }, () => {
  const random = seededRandom(20_260_101);
  const wrong: unknown[] = []; // an expect for each takes longer than the scan
  for (let round = 0; round < 100_000; round++) {
    const params = { value: trickyValue(random), ['x'.repeat(random(90))]: 'y'.repeat(random(200)) };
    const spaced = random(2) ? 1 : 0;
    let text = JSON.stringify(
      shuffled({ id: random(1000), method: 'A.b', params, sessionId: trickyText(random) || 'S' }, random),
      null,
      spaced,
    ).replaceAll('\n', ' '); // in a string it would be one thing to Chromium and another to JSON.parse
    if (random(2)) text = Buffer.from(broken(text, random)).toString(); // a cut may leave half a character

    const [found, expected] = [asRead(text), asParsed(text)];
    if (!isDeepStrictEqual(found, expected)) wrong.push({ text, found, expected });
  }
  expect(wrong.slice(0, 3)).toEqual([]);
});

test('reads a message of 100 MB without a copy of it', () => {
  const message = Buffer.from(
    `{"params":{"a":"${'x\\n'.repeat(10_000)}${'y'.repeat(100_000_000)}"},"id":1,"method":"A.b"}`,
  );
  const command = readWhole(message);
  expect('params' in command && Buffer.isBuffer(command.params) && command.params.buffer === message.buffer).toBe(true);
});

test('reads a message of many values or escapes in pieces', () => {
  for (const value of [
    `[${'0,'.repeat(1_000_000)}0]`,
    `[${'[],'.repeat(1_000_000)}0]`,
    `[${'1e5,'.repeat(100_000)}0]`,
    `[${'{"a":1},'.repeat(100_000)}0]`,
    `[${'"\\n",'.repeat(100_000)}0]`,
    `"${'\\n'.repeat(1_000_000)}"`,
    `[${`${' '.repeat(10_000)}0,`.repeat(1000)}0]`,
  ]) {
    const data = Buffer.from(`{"id":1,"method":"A.b","params":{"a":${value}},"sessionId":"S"}`);
    const reading = readCommand(data);
    expect('next' in reading).toBe(true);
    const command = scanCommand(data);
    expect(command).toMatchObject({ id: 1, method: 'A.b', sessionId: 'S' });
    expect('params' in command && Buffer.isBuffer(command.params) && command.params.toString()).toBe(`{"a":${value}}`);
  }
});

test('an escape at the end of a piece does not end its string', () => {
  for (let before = 9_990; before < 10_010; before++) {
    const data = Buffer.from(`{"id":1,"method":"A.b","params":{"a":"${'\\u0041'.repeat(before)}\\"\\\\"}}`);
    expect(scanCommand(data)).toMatchObject({ id: 1, method: 'A.b' });
  }
});

test('a message of many unknown names is refused for the first', () => {
  const names = Array.from({ length: 1000 }, (_, at) => `"k${at}":0`).join();
  expect(read(`{${names},"id":1,"method":"A.b"}`)).toMatchObject({ id: 1, code: -32600 });
});

test('a method and a session id that are longer than any are refused unread', () => {
  const long = '\\n\u0001'.repeat(1000);
  expect(read(`{"id":1,"method":"${long}"}`)).toMatchObject({ id: 1, code: -32601 });
  expect(read(`{"id":1,"method":"A.b","sessionId":"${long}"}`)).toMatchObject({ id: 1, code: -32001 });
});

function shuffled(object: object, random: Random): object {
  return Object.fromEntries(
    Object.entries(object)
      .map((entry) => ({ entry, place: random(1000) }))
      .sort((a, b) => a.place - b.place)
      .map(({ entry }) => entry),
  );
}

/** One change somewhere: something cut, doubled, or put in. */
function broken(text: string, random: Random): string {
  const at = random(text.length);
  const change = random(4);
  if (change === 0) return text.slice(0, at) + text.slice(at + 1 + random(3));
  if (change === 1) return text.slice(0, at);
  if (change === 2) return text.slice(0, at) + TRICKY[random(TRICKY.length)] + text.slice(at);
  return text.slice(0, at) + text.slice(at - random(20));
}

/** The result of the scan of a message; 'refused' if it is not JSON, undefined if the JSON is not a command. */
function asRead(text: string): unknown {
  const command = scanCommand(Buffer.from(text));
  if (!('method' in command)) return command.code === -32700 ? 'refused' : undefined;
  const params: unknown = Buffer.isBuffer(command.params) ? JSON.parse(command.params.toString()) : undefined;
  return { ...command, params };
}

/** The same by JSON.parse. It accepts messages that are not commands, and repeated names, which the scan must refuse. */
function asParsed(text: string): unknown {
  let parsed: Record<string, unknown>;
  try {
    parsed = JSON.parse(text);
  } catch {
    return 'refused';
  }
  const command = scanCommand(Buffer.from(text));
  if (!('method' in command)) return command.message === 'JSON: duplicate key' ? 'refused' : undefined;
  return {
    id: parsed['id'],
    method: parsed['method'],
    params: parsed['params'],
    sessionId: parsed['sessionId'] || undefined,
  };
}
