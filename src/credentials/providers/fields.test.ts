import { expect, test } from 'vitest';
import { contentsOf, contentsOfTable, type Field } from './fields.ts';

test('of a very large entry, the first fields are read, and the beginning of each label', () => {
  const empty = Array.from({ length: 1200 }, (_, at): Field => ({ kind: 'other', label: `empty ${at}`, value: '' }));
  const late: Field[] = [
    { kind: 'other', label: 'Late', value: 'late' },
    { kind: 'password', label: '', value: 'own' },
  ];
  expect(contentsOf([...empty, ...late]).values).toEqual({ password: 'own' });
  const table = Object.fromEntries([...empty, ...late].map(({ label, value }) => [label, value]));
  expect(contentsOfTable(table).values).toEqual({});
  const [name] = Object.keys(contentsOf([{ kind: 'other', label: 'A-'.repeat(2_000_000), value: 'x' }]).values);
  expect(name).toBe('a_'.repeat(127) + 'a');
});
