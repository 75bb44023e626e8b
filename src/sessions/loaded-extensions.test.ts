import { expect, test } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { silent } from '../lib/log.ts';
import { loadedExtensions } from './loaded-extensions.ts';

/** A browser that records loaded extensions, and refuses those with the name bad. */
function browser() {
  const loaded: string[] = [];
  return {
    loaded,
    engine: {
      ...fakeEngine().engine,
      async loadExtension(name: string) {
        await new Promise((resolve) => setTimeout(resolve, name.length)); // the first takes longest
        if (name === 'bad') throw new Error('Extensions.loadUnpacked: Its manifest is nonsense.');
        loaded.push(name);
        return `id-${name}`;
      },
      async unloadExtension(id: string) {
        loaded.splice(loaded.indexOf(id.slice(3)), 1);
      },
    },
  };
}

function yard() {
  const there = new Set<string>();
  const browsers = {
    addExtension: async (_id: string, name: string) => !there.has(name) && !!there.add(name),
    removeExtension: async (_id: string, name: string) => void there.delete(name),
  };
  return { there, extensions: loadedExtensions({ browsers, log: silent }) };
}

const named = (...names: string[]) => names.map((name) => ({ name, unpack: async () => {} }));

test('extensions are loaded in the order asked for, and in the same order into the next browser', async () => {
  const { extensions } = yard();
  const [first, next] = [browser(), browser()];
  await Promise.all([
    extensions.load('s', first.engine, named('longest', 'long', 'b')),
    extensions.load('s', first.engine, named('c', 'a')), // waits its turn
  ]);
  expect(first.loaded).toEqual(['longest', 'long', 'b', 'c', 'a']);
  await extensions.again('s', next.engine);
  expect(next.loaded).toEqual(first.loaded);
  extensions.forget('s');
  expect(extensions.any('s')).toBe(false);
});

test('of a request that cannot be met nothing stays', async () => {
  const { there, extensions } = yard();
  const { engine, loaded } = browser();
  await extensions.load('s', engine, named('a'));
  await expect(extensions.load('s', engine, named('b', 'bad'))).rejects.toThrow(
    "Extension 'bad' was not loaded: Its manifest is nonsense.",
  );
  await expect(extensions.load('s', engine, named('c', 'a'))).rejects.toThrow(/named 'a' already/);
  const many = Array.from({ length: 20 }, (_, index) => `x${index}`);
  await expect(extensions.load('s', engine, named(...many))).rejects.toThrow(/this one has 1, and 20 more do not fit/);
  expect(loaded).toEqual(['a']);
  expect([...there]).toEqual(['a']);
});
