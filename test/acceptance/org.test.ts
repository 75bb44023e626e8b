import Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../support/service.ts';

let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  service = await startService({ CORRAL_MAX_SESSIONS: '7' });
  sdk = service.sdk();
});
afterAll(() => service?.close());

const collect = async <T>(pages: AsyncIterable<T>) => {
  const items: T[] = [];
  for await (const item of pages) items.push(item);
  return items;
};

describe('projects', () => {
  test('there is one from the start, named Default', async () => {
    const [first] = await collect(sdk.projects.list());
    expect(first).toMatchObject({ name: 'Default', status: 'active' });
  });

  test('live from create to delete', async () => {
    const created = await sdk.projects.create({ name: 'Scraping' });
    expect(created).toEqual(await sdk.projects.retrieve(created.id));
    expect(created.id).toMatch(/^proj_[a-z0-9]{24}$/);
    const renamed = await sdk.projects.update(created.id, { name: 'Crawling' });
    expect(renamed).toMatchObject({ id: created.id, name: 'Crawling' });
    expect(Date.parse(renamed.updated_at)).toBeGreaterThan(Date.parse(created.updated_at));
    await sdk.projects.delete(created.id);
    await expect(sdk.projects.retrieve(created.id)).rejects.toThrow(Kernel.NotFoundError);
    await expect(sdk.projects.delete(created.id)).rejects.toThrow(Kernel.NotFoundError);
    expect(await sdk.projects.create({ name: 'Crawling' })).toMatchObject({ name: 'Crawling' });
  });

  test('are found by a name in any case and with any accents', async () => {
    const { id } = await sdk.projects.create({ name: 'Café Zürich' });
    expect(await sdk.projects.retrieve('CAFE ZURICH')).toMatchObject({ id });
    expect((await collect(sdk.projects.list({ name: 'café zürich' }))).map((project) => project.id)).toEqual([id]);
    expect((await collect(sdk.projects.list({ query: 'ZÜR' }))).map((project) => project.id)).toEqual([id]);
    expect((await collect(sdk.projects.list({ query: id }))).map((project) => project.id)).toEqual([id]);
    expect(await collect(sdk.projects.list({ query: id.slice(0, -1) }))).toEqual([]);
    expect(await collect(sdk.projects.list({ name: 'café' }))).toEqual([]);
  });

  test('have unique names, and a conflict is not retried', async () => {
    await sdk.projects.create({ name: 'Twice' });
    const again = await service.call('POST', '/org/projects', { name: 'TWICE' });
    expect(again).toMatchObject({
      status: 409,
      body: { code: 'already_exists', message: expect.stringContaining('TWICE') },
    });
    expect(again.headers.get('x-should-retry')).toBe('false');
    const other = await sdk.projects.create({ name: 'Other' });
    await expect(sdk.projects.update(other.id, { name: 'twice' })).rejects.toThrow(Kernel.ConflictError);
  });

  test('come in pages that the client walks by itself', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `page ${index}`);
    for (const name of names) await sdk.projects.create({ name });
    const walked = await collect(sdk.projects.list({ limit: 2, query: 'page ' }));
    expect(walked.map((project) => project.name)).toEqual(names);
    const last = await service.call('GET', '/org/projects?limit=4&offset=4&query=page');
    expect(last.body).toHaveLength(3);
    expect(Object.fromEntries(last.headers)).toMatchObject({
      'x-has-more': 'false',
      'x-next-offset': '0',
      'x-limit': '4',
      'x-offset': '4',
    });
    const first = await service.call('GET', '/org/projects?limit=4&query=page');
    expect(Object.fromEntries(first.headers)).toMatchObject({ 'x-has-more': 'true', 'x-next-offset': '4' });
  });

  test('archived serve no request until they are unarchived', async () => {
    const { id } = await sdk.projects.create({ name: 'Sleeping' });
    const { key } = await sdk.apiKeys.create({ name: 'sleeper', project_id: id });
    expect(await sdk.projects.update(id, { status: 'archived' })).toMatchObject({ status: 'archived' });
    await expect(sdk.apiKeys.create({ name: 'no', project_id: id })).rejects.toThrow(Kernel.NotFoundError);
    expect(await sdk.projects.update(id, { status: 'active' })).toMatchObject({ status: 'active' });
    expect(await service.sdk(key).projects.retrieve(id)).toMatchObject({ id });
  });

  test('the default one stays', async () => {
    const { id } = await sdk.projects.retrieve('Default');
    expect(await service.call('DELETE', `/org/projects/${id}`)).toMatchObject({
      status: 409,
      body: { code: 'default_project' },
    });
    expect(await service.call('PATCH', `/org/projects/${id}`, { status: 'archived' })).toMatchObject({ status: 409 });
  });

  test('answer under their older address too', async () => {
    expect(await service.call('GET', '/projects?limit=1')).toMatchObject({ status: 200, body: [{ name: 'Default' }] });
    expect((await service.call('GET', '/projects/Default')).body).toMatchObject({ name: 'Default' });
  });
});

test('the last active project cannot go', async () => {
  const lonely = await startService();
  try {
    const { id } = await lonely.sdk().projects.retrieve('Default');
    expect(await lonely.call('DELETE', `/org/projects/${id}`)).toMatchObject({
      status: 409,
      body: { code: 'last_active_project' },
    });
  } finally {
    await lonely.close();
  }
});

describe('limits', () => {
  test('of a project are set, kept and removed', async () => {
    const { id } = await sdk.projects.create({ name: 'Capped' });
    expect(await sdk.projects.limits.retrieve(id)).toEqual({
      max_concurrent_sessions: null,
      max_concurrent_invocations: null,
      max_pooled_sessions: null,
    });
    await sdk.projects.limits.update(id, { max_concurrent_sessions: 3 });
    expect(await sdk.projects.limits.update(id, { max_concurrent_invocations: 2 })).toMatchObject({
      max_concurrent_sessions: 3,
      max_concurrent_invocations: 2,
    });
    expect(await sdk.projects.limits.update(id, { max_concurrent_sessions: 0 })).toMatchObject({
      max_concurrent_sessions: null,
    });
    expect(await service.call('PATCH', `/org/projects/${id}/limits`, { max_pooled_sessions: 1 })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('max_pooled_sessions') },
    });
  });

  test('of the organisation come from the machine, and the default for projects stays below', async () => {
    const limits = sdk.organization.limits;
    expect(await limits.retrieve()).toEqual({
      max_concurrent_sessions: 7,
      default_project_max_concurrent_sessions: null,
    });
    expect(await limits.update({ default_project_max_concurrent_sessions: 5 })).toMatchObject({
      default_project_max_concurrent_sessions: 5,
    });
    await expect(limits.update({ default_project_max_concurrent_sessions: 8 })).rejects.toThrow(
      /at most max_concurrent_sessions \(7\)/,
    );
    expect(await limits.update({ default_project_max_concurrent_sessions: 0 })).toMatchObject({
      default_project_max_concurrent_sessions: null,
    });
  });
});

describe('API keys', () => {
  test('are shown once, then masked, and stored only as a hash', async () => {
    const created = await sdk.apiKeys.create({ name: 'robot' });
    expect(created.key).toMatch(/^sk_[A-Za-z0-9]{40}$/);
    const { key: _, ...masked } = created;
    expect(await sdk.apiKeys.retrieve(created.id)).toEqual(masked);
    expect(masked.masked_key).toBe(`${created.key.slice(0, 7)}...${created.key.slice(-4)}`);
    expect(masked).toMatchObject({ project_id: null, project_name: null, expires_at: null, deleted_at: null });
    expect((await service.call('GET', '/org/api_keys')).text).not.toContain(created.key);
    const { sql } = await import('../../src/store/sql.ts');
    const rows = await service.app.store.db.rows(sql`select api_keys::text as all from api_keys`);
    expect(JSON.stringify(rows)).not.toContain(created.key);
  });

  test('end at once when they are deleted', async () => {
    const { id, key } = await sdk.apiKeys.create({ name: 'short-lived' });
    const other = service.sdk(key);
    await other.projects.list();
    await sdk.apiKeys.delete(id);
    await expect(other.projects.list()).rejects.toThrow(Kernel.AuthenticationError);
    await expect(sdk.apiKeys.retrieve(id)).rejects.toThrow(Kernel.NotFoundError);
    expect(await sdk.apiKeys.retrieve(id, { include_deleted: true })).toMatchObject({ deleted_at: expect.any(String) });
  });

  test('cannot delete themselves', async () => {
    const { id, key } = await sdk.apiKeys.create({ name: 'self' });
    const answer = await service.call('DELETE', `/org/api_keys/${id}`, undefined, { authorization: `Bearer ${key}` });
    expect(answer).toMatchObject({ status: 400, body: { code: 'cannot_delete_current_key' } });
    expect(await sdk.apiKeys.retrieve(id)).toMatchObject({ deleted_at: null });
  });

  test('expire', async () => {
    const { id, key } = await sdk.apiKeys.create({ name: 'daily', days_to_expire: 1 });
    const { expires_at } = await sdk.apiKeys.retrieve(id);
    expect(Math.round((Date.parse(expires_at!) - Date.now()) / 3_600_000)).toBe(24);
    const { sql } = await import('../../src/store/sql.ts');
    await service.app.store.db.rows(sql`update api_keys set expires_at = now() - interval '1 second' where id = ${id}`);
    const answer = await service.call('GET', '/org/projects', undefined, { authorization: `Bearer ${key}` });
    expect(answer).toMatchObject({
      status: 401,
      body: { code: 'unauthorized', message: expect.stringContaining('expired') },
    });
  });

  test('are rotated: the successor works at once, the old one for its grace', async () => {
    const old = await sdk.apiKeys.create({ name: 'rotating' });
    const successor = await sdk.apiKeys.rotate(old.id, {});
    expect(successor).toMatchObject({ name: 'rotating', project_id: null, expires_at: null });
    const { expires_at } = await sdk.apiKeys.retrieve(old.id);
    expect(Math.round((Date.parse(expires_at!) - Date.now()) / 86_400_000)).toBe(7);
    await service.sdk(old.key).projects.list();
    await service.sdk(successor.key).projects.list();

    const third = await sdk.apiKeys.rotate(successor.id, { expire_in_days: 0, days_to_expire: 30 });
    await expect(service.sdk(successor.key).projects.list()).rejects.toThrow(Kernel.AuthenticationError);
    await service.sdk(third.key).projects.list();
    await expect(sdk.apiKeys.rotate(third.id, { days_to_expire: 3 })).rejects.toThrow(/days_to_expire \(3\)/);
    await expect(sdk.apiKeys.rotate('key_nobody', {})).rejects.toThrow(Kernel.NotFoundError);
  });

  test('are listed by name, state and order', async () => {
    for (const name of ['sorted b', 'sorted a', 'sorted c']) await sdk.apiKeys.create({ name });
    const names = async (params: object) =>
      (await collect(sdk.apiKeys.list({ query: 'SORTED', ...params }))).map((key) => key.name);
    expect(await names({})).toEqual(['sorted c', 'sorted a', 'sorted b']);
    expect(await names({ sort_by: 'name', sort_direction: 'asc' })).toEqual(['sorted a', 'sorted b', 'sorted c']);
    const [b] = await collect(sdk.apiKeys.list({ name: 'SORTED B' }));
    await sdk.apiKeys.delete(b!.id);
    expect(await names({ status: 'deleted' })).toEqual(['sorted b']);
    expect(await names({ status: 'all' })).toHaveLength(3);
    expect(await names({ include_deleted: true })).toHaveLength(3);
    expect(await names({})).toEqual(['sorted c', 'sorted a']);
    expect(await sdk.apiKeys.update(b!.id, { name: 'x' }).catch((error: Error) => error)).toBeInstanceOf(
      Kernel.NotFoundError,
    );
  });
});

describe('a key bound to a project', () => {
  let mine: { id: string };
  let scoped: Kernel;
  let scopedKey: string;
  beforeAll(async () => {
    mine = await sdk.projects.create({ name: 'Mine' });
    scopedKey = (await sdk.apiKeys.create({ name: 'bound', project_id: mine.id })).key;
    scoped = service.sdk(scopedKey);
  });

  test('sees and renames its own project, and no other', async () => {
    expect((await collect(scoped.projects.list())).map((project) => project.id)).toEqual([mine.id]);
    await expect(scoped.projects.retrieve('Default')).rejects.toThrow(Kernel.NotFoundError);
    expect(await scoped.projects.update(mine.id, { name: 'Mine too' })).toMatchObject({ name: 'Mine too' });
  });

  test('may not create, archive or delete projects, nor change limits', async () => {
    for (const attempt of [
      () => scoped.projects.create({ name: 'Grab' }),
      () => scoped.projects.update(mine.id, { status: 'archived' }),
      () => scoped.projects.delete(mine.id),
      () => scoped.projects.limits.update(mine.id, { max_concurrent_sessions: 99 }),
      () => scoped.organization.limits.update({ default_project_max_concurrent_sessions: 1 }),
    ]) {
      await expect(attempt()).rejects.toThrow(Kernel.PermissionDeniedError);
    }
    for (const path of ['/metrics', '/about'])
      expect(await service.call('GET', path, undefined, { authorization: `Bearer ${scopedKey}` }), path).toMatchObject({
        status: 403,
        body: { code: 'forbidden', message: expect.stringContaining('one project') },
      });
  });

  test('mints keys for its own project only, and sees only those', async () => {
    const child = await scoped.apiKeys.create({ name: 'child' });
    expect(child).toMatchObject({ project_id: mine.id, project_name: 'Mine too' });
    const { id } = await sdk.projects.retrieve('Default');
    await expect(scoped.apiKeys.create({ name: 'no', project_id: id })).rejects.toThrow(Kernel.NotFoundError);
    const reachable = await collect(scoped.apiKeys.list());
    expect(new Set(reachable.map((key) => key.project_id))).toEqual(new Set([mine.id]));
    const [first] = await collect(sdk.apiKeys.list({ name: 'first key' }));
    await expect(scoped.apiKeys.retrieve(first!.id)).rejects.toThrow(Kernel.NotFoundError);
    await expect(scoped.apiKeys.delete(first!.id)).rejects.toThrow(Kernel.NotFoundError);
  });

  test('ends with its project', async () => {
    const { id } = await sdk.projects.create({ name: 'Doomed' });
    const { key } = await sdk.apiKeys.create({ name: 'doomed', project_id: id });
    await service.sdk(key).projects.list();
    await sdk.projects.delete(id);
    await expect(service.sdk(key).projects.list()).rejects.toThrow(Kernel.AuthenticationError);
  });
});

describe('the audit log', () => {
  const range = () => ({
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 60_000).toISOString(),
  });

  test('has an entry of every request that changes something, refused ones too, before it is answered', async () => {
    const { id } = await sdk.projects.create({ name: 'Audited' });
    await service.call('POST', '/org/projects', { name: 'audited' });
    const entries = await collect(
      sdk.auditLogs.list({ ...range(), method: 'post', service: 'projects', search: '/org/projects' }),
    );
    expect(entries[0]).toMatchObject({ status: 409, method: 'POST', path: '/org/projects', auth_strategy: 'api_key' });
    expect(entries[1]).toMatchObject({ status: 201, route: '/org/projects', client_ip: '127.0.0.1' });
    await sdk.projects.retrieve(id);
    const reads = await collect(sdk.auditLogs.list({ ...range(), search: id }));
    expect(reads).toEqual([]);
  });

  test('pages, filters and searches', async () => {
    for (let index = 0; index < 5; index++) await sdk.projects.create({ name: `many ${index}` });
    const all = await collect(sdk.auditLogs.list({ ...range(), limit: 2 }));
    expect(all.length).toBeGreaterThan(20);
    expect(new Set(all.map((entry) => JSON.stringify(entry))).size).toBeGreaterThan(20);
    const times = all.map((entry) => Date.parse(entry.timestamp));
    expect(times).toEqual([...times].sort((a, b) => b - a));
    const without = await collect(sdk.auditLogs.list({ ...range(), exclude_method: ['POST', 'patch'] }));
    expect(new Set(without.map((entry) => entry.method))).toEqual(new Set(['DELETE']));
    const conflicts = await collect(sdk.auditLogs.list({ ...range(), search: '409' }));
    expect(conflicts.map((entry) => entry.status)).toContain(409);
    // Ids are random, and some have these digits.
    const others = conflicts.filter(({ status, path, user_id }) => status !== 409 && !(path + user_id).includes('409'));
    expect(others).toEqual([]);
    const { user_id } = all[0]!;
    expect(
      await collect(sdk.auditLogs.list({ ...range(), search: 'nothing like it', search_user_id: [user_id] })),
    ).not.toEqual([]);
  });

  test('is exported in chunks that carry their hash, as the client checks', async () => {
    const chunks: Buffer[] = [];
    for (let cursor: string | undefined; ;) {
      const query = new URLSearchParams({ ...range(), limit: '10', format: 'jsonl', ...(cursor ? { cursor } : {}) });
      const answer = await service.call('GET', `/audit-logs/export/chunk?${query.toString()}`);
      expect(answer.status).toBe(200);
      chunks.push(Buffer.from(answer.text));
      const { createHash } = await import('node:crypto');
      expect(answer.headers.get('x-content-sha256')).toBe(createHash('sha256').update(answer.text).digest('hex'));
      expect(answer.text.trim().split('\n')).toHaveLength(Number(answer.headers.get('x-row-count')));
      if (answer.headers.get('x-has-more') === 'false') break;
      cursor = answer.headers.get('x-next-cursor')!;
    }
    const rows = Buffer.concat(chunks)
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { event_id: string });
    expect(new Set(rows.map((row) => row.event_id)).size).toBe(rows.length);
    expect(chunks.length).toBeGreaterThan(2);
  });

  test('shows a bound key the entries of its own project only', async () => {
    const { id } = await sdk.projects.create({ name: 'Peeking' });
    const { key } = await sdk.apiKeys.create({ name: 'peek', project_id: id });
    await service.sdk(key).projects.update(id, { name: 'Peeked' });
    const seen = await collect(service.sdk(key).auditLogs.list(range()));
    expect(seen.map((entry) => entry.path)).toEqual([`/org/projects/${id}`]);
  });

  test.each([
    ['a range of more than 30 days', 'start=2026-01-01T00:00:00Z&end=2026-03-01T00:00:00Z', '30 days'],
    ['an end before the start', 'start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z', 'end'],
    ['no start', 'end=2026-01-01T00:00:00Z', 'start is missing'],
    ['a time that is none', 'start=yesterday&end=2026-01-01T00:00:00Z', 'start must be a date-time'],
    ['a forged page token', 'start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z&page_token=zzz', 'page token'],
  ])('refuses %s', async (_, query, message) => {
    const answer = await service.call('GET', `/audit-logs?${query}`);
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_input', message: expect.stringContaining(message) },
    });
  });
});
