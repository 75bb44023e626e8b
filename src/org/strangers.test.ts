import { expect, test } from 'vitest';
import { placeOf, strangers } from './strangers.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::1', '2001:db8:1:2'],
  ['2001:0DB8:0001:0002::9', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
])('%s is counted as %s', (address, place) => expect(placeOf(address)).toBe(place));

test('an address waits after many wrong keys, and less with time', () => {
  let now = 0;
  const gate = strangers(() => now);
  for (let turn = 0; turn < 20; turn++) {
    expect(gate.refusal('192.0.2.1')).toBeUndefined();
    gate.count('192.0.2.1', `key ${turn}`);
  }
  expect(gate.refusal('192.0.2.1')).toMatchObject({ status: 429, code: 'too_many_bad_keys' });
  expect(gate.refusal('192.0.2.2')).toBeUndefined();
  now += 3000;
  expect(gate.refusal('192.0.2.1')).toBeUndefined();
  gate.count('192.0.2.1', 'another');
  expect(gate.refusal('192.0.2.1')).toBeDefined();
  now += 10 * 60_000;
  expect(gate.refusal('192.0.2.1')).toBeUndefined();
});

test('an unknown key is not looked up again until keys change or a minute has passed', () => {
  let now = 0;
  const gate = strangers(() => now);
  gate.count('192.0.2.1', 'key');
  expect(gate.isUnknown('key')).toBe(true);
  gate.forgetKeys();
  expect(gate.isUnknown('key')).toBe(false);
  gate.count('192.0.2.1', 'key');
  now += 60_001;
  expect(gate.isUnknown('key')).toBe(false);
});

test('many addresses and keys take a bounded room', () => {
  const gate = strangers(() => 0);
  for (let turn = 0; turn < 100_000; turn++)
    gate.count(`10.${turn >> 16}.${(turn >> 8) & 255}.${turn & 255}`, `${turn}`);
  expect(gate.isUnknown('0')).toBe(false);
  expect(gate.isUnknown('99999')).toBe(true);
});
