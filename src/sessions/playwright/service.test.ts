import { expect, test } from 'vitest';
import { executeResult } from './service.ts';

const room = { add: async () => {}, whole() {}, close() {} };
const text = (parts: Buffer[]) => Buffer.concat(parts).toString();
const none = Buffer.alloc(0);

test.each([
  [{ success: true, result: Buffer.from('{"a":1}'), stdout: none, stderr: none }, '{"success":true,"result":{"a":1}}'],
  [
    { success: false, error: 'a "b"', stdout: Buffer.from('out\n'), stderr: Buffer.from('é') },
    '{"success":false,"error":"a \\"b\\"","stdout":"out\\n","stderr":"é"}',
  ],
])('an outcome is written as JSON', async (executed, json) => {
  expect(text(await executeResult(executed, room))).toBe(json);
});

test('long outputs are written in parts, and each part is counted', async () => {
  const stdout = Buffer.alloc(1024 * 1024, 1);
  let counted = 0;
  const parts = await executeResult(
    { success: true, result: Buffer.from('null'), stdout, stderr: none },
    { ...room, add: async (bytes) => void (counted += bytes) },
  );
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(1.5e6);
  expect(counted).toBe(6 * stdout.length + 2);
  expect(JSON.parse(text(parts))).toEqual({ success: true, result: null, stdout: stdout.toString() });
});
