import type { Reading } from '../../../src/logins/reading/types.ts';

/** A reading in one line: its kind, its fields by id and type, the choices' ids, the reasons of the steps. */
export function brief(reading: Reading): string {
  return [
    reading.kind,
    ...reading.fields.map(({ id, type, refs }) => `${id}:${type}${refs === undefined ? '' : `×${refs.length}`}`),
    ...reading.choices.map(({ id }) => `(${id})`),
    ...reading.next.map(({ why, act }) => `>${why}${act === 'check' ? '!' : ''}`),
  ].join(' ');
}
