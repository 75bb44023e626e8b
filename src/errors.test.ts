import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeErrors, errorCodes } from './errors.ts';

test('every code of every room is in the catalogue, each once', async () => {
  const folder = new URL('errors/', import.meta.url);
  const files = readdirSync(folder).filter((file) => file !== 'entry.ts');
  const parts = await Promise.all(
    files.map(async (file) => Object.values((await import(new URL(file, folder).href)) as Record<string, object>)),
  );
  const codes = parts.flat().flatMap((part) => Object.keys(part));
  expect(codes.toSorted()).toEqual(errorCodes.toSorted());
});

test('the table for readers goes by status', () => {
  const statuses = [...describeErrors().matchAll(/^\| `\w+` \| (\d+) /gm)].map(([, status]) => Number(status));
  expect(statuses).toHaveLength(errorCodes.length);
  expect(statuses).toEqual(statuses.toSorted((a, b) => a - b));
});
