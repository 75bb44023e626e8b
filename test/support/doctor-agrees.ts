import { expect } from 'vitest';
import { findParts } from '../../scripts/parts.mjs';
import type { Answer } from './service.ts';

/**
 * `npm run doctor` and `GET /ready` name the same missing things, and agree whether browsers run. The service's own look at the machine is
 * the doctor's, in `GET /about`. Returns the missing things.
 */
export async function expectDoctorAgrees(get: (path: string) => Promise<Pick<Answer, 'status' | 'body'>>) {
  const [about, ready] = await Promise.all([get('/about'), get('/ready')]);
  const { findings, failure } = about.body.doctor as {
    findings: { name: string; well: boolean; required?: boolean }[];
    failure: string | null;
  };
  expect(failure).toBe(null);
  const said = (name: string): string =>
    ready.body.parts.find((part: { name: string }) => part.name === name)?.detail ?? '';
  const missing = findings.filter(({ well }) => !well).map(({ name }) => name);
  const parts = findParts().map(({ name }) => name);
  expect([...said('parts').matchAll(/(\S+) is not installed/g)].map(([, name]) => name)).toEqual(
    parts.filter((name) => missing.includes(name)),
  );
  expect(/cgroup/.test(said('isolation')), said('isolation')).toBe(missing.includes('cgroups'));
  expect(/no sandbox/.test(said('isolation')), said('isolation')).toBe(missing.includes('sandbox'));
  expect(ready.status === 503).toBe(findings.some(({ well, required }) => !well && required));
  return missing;
}
