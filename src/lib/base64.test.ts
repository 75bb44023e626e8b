import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { base64Parts, fromBase64 } from './base64.ts';

test.each([0, 1, 2, 3, 192 * 1024, 192 * 1024 + 1, 500_000])(
  '%i bytes become Base64 in parts, and bytes again',
  async (size) => {
    const bytes = randomBytes(size);
    const parts: Buffer[] = [];
    for await (const part of base64Parts(bytes)) parts.push(part);
    const text = Buffer.concat(parts).toString();
    expect(text === bytes.toString('base64')).toBe(true);
    expect((await fromBase64(text)).equals(bytes)).toBe(true);
  },
);
