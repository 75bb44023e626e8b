import { describe, expect, test } from 'vitest';
import { wishOf } from './query-schema.ts';

const wish = (query: string) => wishOf(new URLSearchParams(query));
const request = (query: string) => {
  const read = wish(query);
  if (read.kind !== 'new') throw new Error(read.kind);
  return read.request;
};
const refused = (query: string) => {
  try {
    wish(query);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error(`${query} was taken`);
};

describe('the options of an address', () => {
  test('have the names and types of POST /browsers', () => {
    expect(request('headless=true&timeout_seconds=120&start_url=https://example.com&name=mine')).toEqual({
      headless: true,
      timeout_seconds: 120,
      start_url: 'https://example.com',
      name: 'mine',
    });
    expect(request('')).toEqual({});
    expect(request('headless=&name=')).toEqual({});
  });

  test('have parts by dots or by JSON, and a name alone where a thing is chosen by name', () => {
    const viewport = { width: 800, height: 600 };
    expect(request('viewport.width=800&viewport.height=600')).toEqual({ viewport });
    expect(request(`viewport=${JSON.stringify(viewport)}`)).toEqual({ viewport });
    expect(request('profile=work&profile.save_changes=true')).toMatchObject({
      profile: { name: 'work', save_changes: true },
    });
    expect(request('profile.save_changes=true&profile=work')).toMatchObject({
      profile: { name: 'work', save_changes: true },
    });
    expect(request('profile={"id":"prof_1"}')).toMatchObject({ profile: { id: 'prof_1' } });
    expect(request('extensions=a,b')).toEqual({ extensions: [{ name: 'a' }, { name: 'b' }] });
    expect(request('extensions=[{"id":"ext_1"}]')).toEqual({ extensions: [{ id: 'ext_1' }] });
    expect(request('tags.team=a&tags.cost.center=7')).toEqual({ tags: { team: 'a', 'cost.center': '7' } });
    expect(request('telemetry.enabled=true&telemetry.browser.page.enabled=false')).toEqual({
      telemetry: { enabled: true, browser: { page: { enabled: false } } },
    });
  });

  test('may keep the session, take one of a pool, or name a running session', () => {
    expect(wish('keep_alive=true')).toEqual({ kind: 'new', request: {}, keepAlive: true });
    expect(wish('pool=warm&keep_alive=true&acquire_timeout_seconds=5&tags.a=b')).toEqual({
      kind: 'pool',
      pool: 'warm',
      request: { acquire_timeout_seconds: 5, tags: { a: 'b' } },
      keepAlive: true,
    });
    expect(wish('session=abc')).toEqual({ kind: 'session', session: 'abc' });
  });

  test.each([
    ['headles=true', 'headles is not an option here. Did you mean headless?'],
    ['viewport.widht=1', 'viewport.widht is not an option here. Did you mean viewport.width?'],
    ['viewport={"width":1,"height":1,"depth":3}', 'viewport.depth is not an option here.'],
    ['headless=yes', 'headless must be true or false.'],
    ['timeout_seconds=soon', 'timeout_seconds must be an integer.'],
    ['timeout_seconds=5', 'timeout_seconds must be at least 10.'],
    ['viewport.width=800', 'viewport.height is missing.'],
    ['viewport=800', 'viewport must be JSON'],
    ['viewport={', 'viewport is not JSON'],
    ['headless.x=1', 'headless has no parts'],
    ['name=a&name=b', 'name is there twice'],
    ['pool=warm&headless=true', 'headless is a setting of the pool'],
    ['acquire_timeout_seconds=1', 'acquire_timeout_seconds needs pool.'],
    ['session=a&headless=true', 'headless cannot be combined with session'],
    ['tags.__proto__=x', 'tags.__proto__ is not an option.'],
    ['__proto__=x', '__proto__ is not an option here.'],
    ['engine_policy={"__proto__":{}}', 'engine_policy is not JSON'],
    ['constructor.prototype=x', 'constructor is not an option here.'],
  ])('%s is refused', (query, message) => expect(refused(query)).toContain(message));

  test('are refused without their values, which may be a key in the wrong place', () => {
    for (const query of ['tokn=sk-secret', 'headless=sk-secret', 'timeout_seconds=sk-secret', 'viewport={"sk-secret'])
      expect(refused(query)).not.toContain('sk-secret');
  });
});
