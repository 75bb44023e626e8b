import { expect, test } from 'vitest';
import { scrubber } from './scrub.ts';

test('a record contains no typed value and no value of the credential', async () => {
  const scrub = scrubber();
  scrub.add('typed-password');
  scrub.hold(['ada@shop.example', 'of-the credential']);
  const record = {
    page: ['Hello ada@shop.example', { url: '/?m=ada%40shop.example', n: 1 }],
    no: undefined,
    all: null,
  };
  expect(await scrub.deep({ ...record, text: 'typed-password, of-the credential' })).toEqual({
    page: ['Hello •••', { url: '/?m=•••', n: 1 }],
    no: undefined,
    all: null,
    text: '•••, •••',
  });
});

test.each([100, 120, 200, 300, 500])('a text that is cut after %i characters keeps no part of a value', (length) => {
  const scrub = scrubber();
  scrub.add('correct horse battery');
  for (const part of [3, 10, 20]) {
    const text = 'x '.repeat(length).slice(0, length - part) + 'correct horse battery'.slice(0, part);
    expect(scrub.text(text)).not.toContain('cor');
    expect(scrub.text(`The button says "${text}".`)).not.toContain('cor');
    expect(scrub.text(text).length).toBeGreaterThan(length - 25);
  }
  // A whole value before the end, too, and nothing is lost where no value can be.
  expect(scrub.text('x '.repeat(length).slice(0, length - 22) + 'correct horse battery.')).not.toContain('cor');
  const harmless = 'y'.repeat(length);
  expect(scrub.text(harmless)).toBe(harmless);
});

test('a former value of a credential is shown again, unless it was typed', () => {
  const scrub = scrubber();
  scrub.hold(['first-one', 'first-two']);
  scrub.add('first-two');
  scrub.hold(['second-one']);
  expect(scrub.text('first-one first-two second-one')).toBe('first-one ••• •••');
});

test('others have their turn while a large record is read for many values', async () => {
  const scrub = scrubber();
  scrub.hold(Array.from({ length: 100 }, (_, at) => `${'a'.repeat(100)}${at}`));
  const record = Array.from({ length: 10_000 }, (_, at) => `${'a'.repeat(290)}${at}`);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await scrub.deep(record);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(2);
});

test('however many values are typed, the first of them stays hidden', () => {
  const scrub = scrubber();
  for (let at = 0; at < 600; at++) scrub.add(`typed-value-${at}.`);
  expect(scrub.text('typed-value-0. typed-value-599. other')).toBe('••• ••• other');
  for (let at = 0; at < 2000; at++) scrub.add(`typed-value-${at}.`);
  expect(scrub.text('typed-value-0.')).toBe('•••');
  expect(scrub.text('typed-value-1999.')).toBe('•••');
});

test('values that begin alike, or are longer than the search compares at once, are found as a whole', () => {
  const scrub = scrubber();
  const long = Array.from({ length: 60 }, (_, at) => `part-${at}`).join(' ');
  scrub.hold(['aaab', 'aaabbb', long]);
  expect(scrub.text(`x aaabbb y aaab z ${long} aaa`)).toBe('x ••• y ••• z ••• aaa');
});
