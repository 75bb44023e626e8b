import { expect, test } from 'vitest';
import { isLight, JsonWeight, MOST_ESCAPES } from './json-weight.ts';

test('the weight of JSON is that of its values, not of its strings', () => {
  const weigh = (json: string) => {
    const weight = new JsonWeight();
    weight.add(Buffer.from(json));
    return weight.weight;
  };
  expect(weigh('{"a":[1,2,{}],"b":"x"}')).toBe(8);
  expect(weigh(`"${'[{,:'.repeat(1000)}"`)).toBe(0);
  expect(weigh(String.raw`["\"[[[","\\",[]]`)).toBe(4);
});

test('JSON that comes in pieces weighs the same wherever it is cut', () => {
  const json = Buffer.from(String.raw`{"a\"{":"\\\"[[","b":[{},{}]}`);
  const whole = new JsonWeight();
  whole.add(json);
  for (let cut = 0; cut <= json.length; cut++) {
    const weight = new JsonWeight();
    weight.add(json.subarray(0, cut));
    weight.add(json.subarray(cut));
    expect(weight).toMatchObject({ weight: whole.weight, escapes: 3 });
  }
});

test('a large string is light, and many small values are not', () => {
  expect(isLight(JSON.stringify('x,'.repeat(500_000)))).toBe(true);
  expect(isLight(`[${'{},'.repeat(60_000)}{}]`)).toBe(false);
});

test('a string of many escapes is not light', () => {
  const escapes = (count: number) => `"${'\\n'.repeat(count)}"`;
  expect(isLight(escapes(MOST_ESCAPES))).toBe(true);
  expect(isLight(escapes(MOST_ESCAPES + 1))).toBe(false);
});
