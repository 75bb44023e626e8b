import Kernel, { toFile } from '@onkernel/sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { extensionFiles, zipOf } from '../support/extension-zip.ts';
import { loggedIn, startLoginSite, type LoginSite } from '../support/login-site.ts';
import { startNodes, type Node, type Nodes } from '../support/nodes.ts';

let site: LoginSite;
let nodes: Nodes;
let a: Node;
let b: Node;
beforeAll(async () => {
  site = await startLoginSite();
  nodes = await startNodes();
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: site.host, CORRAL_MAX_SESSIONS: '4' };
  a = await nodes.start(settings);
  b = await nodes.start(settings);
}, 120_000);
afterAll(async () => {
  await nodes?.close();
  await site?.close();
});

const sdkOf = (node: Node) => new Kernel({ apiKey: nodes.key, baseURL: node.url });
const nodeOf = (session: { cdp_ws_url: string }) => new URL(session.cdp_ws_url).host;

test('what one node saves, another starts with; and a request that reaches the wrong node is passed on', async () => {
  await expect.poll(async () => (await a.members()).length, { timeout: 20_000 }).toBe(2);
  const profile = await sdkOf(a).profiles.create({ name: 'shared' });
  const zip = await toFile(await zipOf(extensionFiles('far')), 'far.zip');
  await sdkOf(b).extensions.upload({ file: zip, name: 'far' });
  const writer = await sdkOf(a).browsers.create({ headless: true, profile: { id: profile.id, save_changes: true } });
  await site.logIn(writer);
  const other = nodeOf(writer) === new URL(a.url).host ? b : a;
  const refused = await other.call('POST', '/browsers', {
    headless: true,
    profile: { id: profile.id, save_changes: true },
  });
  expect(refused).toMatchObject({ status: 409, body: { session_id: writer.session_id } });
  await sdkOf(other).browsers.deleteByID(writer.session_id);

  // On each node, and on the one that has no browser of it attached from afar.
  const sessions = await Promise.all([a, b, a, b].map((node) => sdkOf(node).browsers.create({ headless: true })));
  expect(new Set(sessions.map(nodeOf)).size).toBe(2);
  for (const session of sessions.filter((one, at) => sessions.findIndex((two) => nodeOf(two) === nodeOf(one)) === at)) {
    const far = nodeOf(session) === new URL(a.url).host ? b : a;
    await sdkOf(far).browsers.update(session.session_id, { profile: { id: profile.id } });
    expect(await site.look(session)).toEqual(loggedIn);
    await sdkOf(far).browsers.loadExtensions(session.session_id, {
      extensions: [{ name: 'far', zip_file: await toFile(await zipOf(extensionFiles('far')), 'far.zip') }],
    });
    await site.onPage(session, async (page) => {
      await page.reload();
      await page.waitForSelector('html[data-far]', { state: 'attached' });
    });
  }
  await Promise.all(sessions.map((session) => sdkOf(a).browsers.deleteByID(session.session_id)));
}, 120_000);
