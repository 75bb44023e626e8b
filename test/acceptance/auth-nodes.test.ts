import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startShopSite, type ShopSite } from '../support/logins/shop-site.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';

const person = { username: 'ann', password: 'open-sesame-1' };

let site: ShopSite;
let nodes: Nodes;
let a: Node;
let b: Node;
beforeAll(async () => {
  site = await startShopSite(person);
  nodes = await startNodes();
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: site.host, CORRAL_MAX_SESSIONS: '4' };
  [a, b] = [await nodes.start(settings), await nodes.start(settings)];
});
afterAll(async () => {
  await nodes?.close();
  await site?.close();
});

const patience = { timeout: 150_000, interval: 250 };
const read = async (node: Node, id: string) => (await node.call('GET', `/auth/connections/${id}`)).body;
const until = (node: Node, id: string, expected: object) =>
  vi.waitFor(async () => {
    const now = await read(node, id);
    expect(now).toMatchObject(expected);
    return now;
  }, patience);

test(
  'any node answers for a login; if the node that logs in again dies, another node does it',
  { timeout: 400_000 },
  async () => {
    const made = await a.call('POST', '/auth/connections', {
      domain: site.host,
      profile_name: 'ann',
      login_url: `${site.url}/login`,
    });
    const { id } = made.body;
    await a.call('POST', `/auth/connections/${id}/login`);
    const asked = await until(b, id, { flow_step: 'AWAITING_INPUT' });
    const values = asked.fields.map((field: { id: string; type: string }) => [
      field.id,
      field.type === 'password' ? person.password : person.username,
    ]);
    const submitted = await b.call('POST', `/auth/connections/${id}/submit`, {
      field_values: Object.fromEntries(values),
    });
    expect(submitted.status).toBe(202);
    await until(b, id, { status: 'AUTHENTICATED', flow_status: 'SUCCESS', can_reauth: true });

    // The site ends its sessions. One of the nodes notices, logs in again, and dies while the site answers.
    site.endSessions();
    let answer!: () => void;
    site.faults.hold = new Promise<void>((resolve) => (answer = resolve));
    await nodes.ask(sql`update auth_connections set next_check_at = now()`);
    await until(a, id, { flow_type: 'REAUTH', flow_status: 'IN_PROGRESS', browser_session_id: expect.any(String) });
    const [run] = await nodes.ask<{ node_id: string }>(sql`select node_id from auth_runs where status = 'IN_PROGRESS'`);
    const [dying, other] = (await a.id()) === run!.node_id ? [a, b] : [b, a];
    await dying.kill('SIGKILL');
    answer();
    site.faults.hold = undefined;

    await until(other, id, { status: 'AUTHENTICATED', flow_type: 'REAUTH', flow_status: 'SUCCESS' });
    const { body: timeline } = await other.call('GET', `/auth/connections/${id}/timeline?type=reauth`);
    expect(timeline).toMatchObject([
      { status: 'SUCCESS' },
      { status: 'FAILED', error_code: 'browser_error', error_message: expect.stringContaining('lost') },
    ]);
    // The node gives its claim up when all of the check is done, a moment after the login is.
    const claimed = () => nodes.ask(sql`select claim_id from auth_connections where claim_id is not null`);
    await expect.poll(claimed).toEqual([]);
    await expect.poll(() => nodes.ask(sql`select id from auth_inputs`)).toEqual([]);
  },
);
