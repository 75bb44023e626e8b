import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { formsSite } from '../../../test/support/forms-site.ts';
import { muxServer, RawClient, type MuxServer } from '../../../test/support/mux-server.ts';
import { usual } from './bounds.ts';
import { openForms } from './forms.ts';
import type { El, Forms, FrameSnapshot, Snapshot } from './types.ts';

let server: MuxServer;
let site: Awaited<ReturnType<typeof formsSite>>;
let forms: Forms;
let page: string;
const allow = () => true;

beforeAll(async () => {
  site = await formsSite();
  server = await muxServer(undefined, undefined, '--site-per-process');
  forms = openForms(server.mux);
});

beforeEach(async () => {
  page = await forms.open(`${site.url}/welcome`);
  return () => forms.close(page);
});

afterAll(async () => {
  forms?.dispose();
  await server?.stop();
  site?.close();
});

const rest = () => forms.settled(page, { deadlineMs: 30_000 });

async function at(path: string): Promise<Snapshot> {
  expect(await forms.navigate(page, site.url + path)).toEqual({ status: 200 });
  for (;;) {
    await rest();
    const snapshot = await forms.snapshot(page);
    // The rest does not wait for a frame with a process that starts late, as on a loaded machine.
    if (!snapshot.loading) return snapshot;
  }
}

const all = ({ frames }: Snapshot) => frames.flatMap(({ elements }) => elements);
const texts = ({ frames }: Snapshot) => frames.flatMap(({ texts: blocks }) => blocks);
const seen = (snapshot: Snapshot) => texts(snapshot).filter(({ visible }) => visible);
const words = (snapshot: Snapshot) => seen(snapshot).map(({ text }) => text);

function element(snapshot: Snapshot | FrameSnapshot, where: Partial<El>): El {
  const elements = 'frames' in snapshot ? all(snapshot) : snapshot.elements;
  const found = elements.filter((each) =>
    Object.entries(where).every(([name, value]) => each[name as keyof El] === value),
  );
  expect(found, JSON.stringify(where)).toHaveLength(1);
  return found[0]!;
}

test('a page is read as a person sees it and as assistive technology reads it', async () => {
  const snapshot = await at('/login');

  expect(snapshot).toMatchObject({ url: `${site.url}/login`, title: 'Sign in', lang: 'en', httpStatus: 200 });
  expect(snapshot.loading).toBe(false);
  const user = element(snapshot, { name: 'user' });
  expect(user).toMatchObject({
    tag: 'input',
    type: 'email',
    id: 'user',
    autocomplete: 'username',
    accessibleName: 'E-mail address',
    labels: ['E-mail address'],
    required: true,
    filled: false,
    visible: true,
    inViewport: true,
    covered: false,
    inDialog: false,
  });
  expect(user.selectors).toEqual(
    expect.arrayContaining(['#user', 'input[name="user"][type="email"]', 'label=E-mail address']),
  );
  const password = element(snapshot, { name: 'pass' });
  expect(password).toMatchObject({
    type: 'password',
    filled: true,
    maxlength: 64,
    near: 'Password',
    formKey: user.formKey,
    description: 'At least eight characters.',
  });
  expect(element(snapshot, { type: 'checkbox' })).toMatchObject({ labels: ['Keep me signed in'], checked: false });
  expect(element(snapshot, { tag: 'select' }).options).toEqual([
    { label: 'Local', value: 'local', selected: true },
    { label: 'LDAP', value: 'ldap', selected: false },
  ]);
  expect(element(snapshot, { accessibleName: 'Sign in' })).toMatchObject({ tag: 'button', type: 'submit' });
  expect(element(snapshot, { tag: 'a' })).toMatchObject({ href: `${site.url}/forgot`, accessibleName: 'Forgot it?' });
  expect(element(snapshot, { name: 'elements' }).formKey).not.toBe(user.formKey);
  expect(element(snapshot, { accessibleName: 'Hidden' }).visible).toBe(false);
  expect(element(snapshot, { accessibleName: 'Disabled' })).toMatchObject({ visible: true, disabled: true });
  expect(element(snapshot, { accessibleName: 'Covered' }).covered).toBe(true);
  expect(element(snapshot, { classes: 'btn-sso' }).accessibleName).toBe('Continue with Example');
  expect(element(snapshot, { name: 'tenant' })).toMatchObject({ labels: ['Tenant'], visible: true });

  expect(words(snapshot)).toEqual(
    expect.arrayContaining(['Welcome back', 'E-mail address', 'Password', 'At least eight characters.']),
  );
  expect(words(snapshot)).not.toContain('For screen readers');
  expect(texts(snapshot).find(({ text }) => text === 'Welcome back')).toMatchObject({ heading: true, tag: 'h1' });
  expect(texts(snapshot).find(({ live }) => live)).toMatchObject({ text: 'Your session has ended.', role: 'alert' });
  expect(JSON.stringify(snapshot)).not.toMatch(/planted/);
});

test('frames of other sites are read and used, wherever they are on the page', async () => {
  const snapshot = await at('/login');
  const [main, other, hidden] = snapshot.frames as [FrameSnapshot, FrameSnapshot, FrameSnapshot];
  expect(main).toMatchObject({ main: true, origin: site.url });
  expect(other).toMatchObject({ main: false, visible: true, origin: site.otherUrl });
  expect(other.box!.y).toBeGreaterThan(1500);
  expect(hidden).toMatchObject({ origin: site.url, visible: false });
  expect(element(hidden, { name: 'code' }).visible).toBe(false);

  await forms.act(page, { kind: 'type', ref: element(other, { name: 'code' }).ref, text: 'ab12', allow });
  await forms.act(page, { kind: 'click', ref: element(other, { accessibleName: 'Check' }).ref });
  await rest();
  expect(words(await forms.snapshot(page))).toContain('Got 4');
});

test('a form is filled in by mouse and keyboard, and what it leaves in the browser can be compared', async () => {
  const snapshot = await at('/login');
  const before = await forms.state(page);
  const ref = (where: Partial<El>) => element(snapshot, where).ref;
  await forms.act(page, { kind: 'type', ref: ref({ name: 'user' }), text: 'alice@example.org', allow });
  await forms.act(page, { kind: 'type', ref: ref({ name: 'pass' }), text: 'Secret 1!', clear: true, allow });
  await forms.act(page, { kind: 'type', ref: ref({ name: 'tenant' }), text: 'nörth', allow });
  await forms.act(page, { kind: 'check', ref: ref({ type: 'checkbox' }), on: true });
  await forms.act(page, { kind: 'choose', ref: ref({ tag: 'select' }), value: 'ldap', allow });
  const filled = await forms.snapshot(page);
  expect(element(filled, { name: 'user' }).filled).toBe(true);
  expect(element(filled, { type: 'checkbox' }).checked).toBe(true);
  expect(element(filled, { tag: 'select' }).options![1]!.selected).toBe(true);
  expect(element(filled, { name: 'tenant' }).filled).toBe(true);
  expect(JSON.stringify(filled)).not.toMatch(/Secret 1|example\.org|nörth/);

  await forms.act(page, { kind: 'press', key: 'Enter', ref: ref({ name: 'pass' }) });
  await rest();
  expect(await forms.snapshot(page)).toMatchObject({ url: `${site.url}/welcome`, title: 'Welcome' });
  await expect(forms.act(page, { kind: 'click', ref: ref({ name: 'user' }) })).rejects.toMatchObject({
    fault: 'stale',
  });

  const after = await forms.state(page);
  const cookie = after.cookies.find(({ name }) => name === 'sid');
  expect(cookie).toMatchObject({ domain: '127.0.0.1', httpOnly: true, session: true });
  expect(JSON.stringify([before, after])).not.toMatch(/planted/);
});

test('the storage of a site is compared without running its scripts', async () => {
  await at('/tokens');
  const [first, second] = [await forms.stored(site.url), await forms.stored(site.url)];
  expect(first.storage).toMatchObject([{ origin: site.url, keys: 1 }]);
  expect(second).toEqual(first);
  await at('/tokens'); // which renews its token
  expect((await forms.stored(site.url)).storage).not.toEqual(first.storage);
  expect((await forms.stored(site.otherUrl)).storage).toMatchObject([{ origin: site.otherUrl, keys: 0 }]);
  await expect(forms.stored('file:///')).rejects.toMatchObject({ fault: 'unfit' });
});

test('fields that a framework controls get real keys, and what a click begins is waited for', async () => {
  const field = element(await at('/controlled'), { id: 'name' });
  await forms.act(page, { kind: 'type', ref: field.ref, text: 'alice', allow });
  const typed = await forms.snapshot(page);
  expect(words(typed)).toContain('5 keys, 5 characters');
  await forms.act(page, { kind: 'click', ref: element(typed, { accessibleName: 'Next' }).ref });
  await rest();
  expect(words(await forms.snapshot(page))).toContain('The outcome');
});

test('boxes of one character are typed into one by one', async () => {
  const boxes = (await at('/boxes')).frames[0]!.elements;
  for (const [i, digit] of '314159'.split('').entries())
    await forms.act(page, { kind: 'type', ref: boxes[i]!.ref, text: digit, allow });
  expect(words(await forms.snapshot(page))).toContain('Complete: 314159');
});

test('a page that polls and animates comes to rest, after what the click began', async () => {
  const snapshot = await at('/restless');
  await forms.act(page, { kind: 'click', ref: element(snapshot, { tag: 'button' }).ref });
  await rest();
  // A server that takes longer than a page is waited for, as on a loaded machine, answers after the rest.
  await expect.poll(async () => words(await forms.snapshot(page)), { timeout: 60_000 }).toContain('The outcome');
});

test('a page that another one opens is there with its opener', async () => {
  const snapshot = await at('/opener');
  await forms.act(page, { kind: 'click', ref: element(snapshot, { tag: 'button' }).ref });
  const opened = async () => (await forms.pages()).find(({ opener }) => opener === page);
  await expect.poll(opened).toMatchObject({ url: `${site.url}/popup` });
  const { pageId } = (await opened())!;
  await forms.settled(pageId, { deadlineMs: 30_000 });
  const popup = await forms.snapshot(pageId);
  await forms.act(pageId, { kind: 'type', ref: element(popup, { name: 'user' }).ref, text: 'alice', allow });
  await forms.act(pageId, { kind: 'click', ref: element(popup, { accessibleName: 'Done' }).ref });
  await expect.poll(opened).toBeUndefined();
  await expect(forms.snapshot(pageId)).rejects.toMatchObject({ fault: 'page_gone' });
});

test('what a dialog said is in the next snapshot', async () => {
  const snapshot = await at('/dialog');
  await forms.act(page, { kind: 'click', ref: element(snapshot, { tag: 'button' }).ref });
  await rest();
  const after = await forms.snapshot(page);
  expect(after.title).toBe('After');
  expect(texts(after)[0]).toMatchObject({ text: 'Wrong password', tag: 'dialog', live: true });
});

test('nothing is typed into an element that was not read', async () => {
  const mine = element(await at('/thief'), { name: 'mine' });
  await expect(forms.act(page, { kind: 'type', ref: mine.ref, text: 'abcde', allow })).rejects.toMatchObject({
    fault: 'unreachable',
  });

  const code = element((await at('/login')).frames[1]!, { name: 'code' });
  const client = await RawClient.open(server.endpoint);
  const { sessionId } = await client.attachTo(page);
  await client.evaluate('document.querySelector("iframe").src = "/thief"', sessionId);
  const thief = async () => all(await forms.snapshot(page)).find(({ name }) => name === 'mine');
  await expect.poll(thief).toBeDefined();
  await expect(forms.act(page, { kind: 'type', ref: code.ref, text: '123456', allow })).rejects.toMatchObject({
    fault: 'stale',
  });
  expect(await thief()).toMatchObject({ filled: false });
  await client.close();
});

test('a value is typed only if its document and all documents around it are allowed', async () => {
  const [main, other] = (await at('/login')).frames as [FrameSnapshot, FrameSnapshot];
  const [own, inner] = [element(main, { name: 'user' }).ref, element(other, { name: 'code' }).ref];
  const only = (...origins: string[]) => ({ text: 'abc', allow: (origin: string) => origins.includes(origin) });
  const foreign = (origin: string) => ({ fault: 'foreign', origin });

  await forms.act(page, { kind: 'type', ref: own, ...only(site.url) });
  const type = (ref: string, ...origins: string[]) => forms.act(page, { kind: 'type', ref, ...only(...origins) });
  await expect(type(own, site.otherUrl)).rejects.toMatchObject(foreign(site.url));
  await expect(type(inner, site.url)).rejects.toMatchObject(foreign(site.otherUrl));
  await expect(type(inner, site.otherUrl)).rejects.toMatchObject(foreign(site.url));
  const ref = element(main, { tag: 'select' }).ref;
  const { allow: never } = only();
  await expect(forms.act(page, { kind: 'choose', ref, value: 'ldap', allow: never })).rejects.toMatchObject({
    fault: 'foreign',
  });
  await expect(forms.act(page, { kind: 'pick', ref, allow: never })).rejects.toMatchObject({ fault: 'foreign' });
  const after = await forms.snapshot(page);
  expect(element(after.frames[1]!, { name: 'code' }).filled).toBe(false);
  expect(element(after, { tag: 'select' }).options![0]!.selected).toBe(true);
  const asked: unknown[] = [];
  const asks = (...of: unknown[]) => asked.push(of) > 0;
  await forms.act(page, { kind: 'type', ref: inner, text: 'abc', allow: asks });
  expect(asked).toEqual([
    [site.otherUrl, false],
    [site.url, true],
  ]);
});

test('text is typed again into a field that lost its beginning, and not into a field that changed it', async () => {
  const snapshot = await at('/rewriting');
  for (const [name, text] of [
    ['late', 'abcdef'],
    ['tidy', 'g h i'],
    ['short', 'jklm'],
  ] as const)
    await forms.act(page, { kind: 'type', ref: element(snapshot, { name }).ref, text, allow });
  await rest();
  expect(words(await forms.snapshot(page))).toContain('abcdef/ghi/jkl');
});

test.each([
  ['date', '2001-12-31', '31.12.2001'],
  ['time', '18:30', 'half past six'],
  ['month', '2001-12', 'December'],
  ['week', '2001-W50', '50'],
  ['datetime-local', '2001-12-31T18:30', 'then'],
  ['color', '#aabbcc', 'mauve-ish'],
  ['range', '70', 'much'],
])('a field of type %s gets its value as a whole, and the page hears of it', async (type, text, other) => {
  const { ref } = element(await at('/pickers'), { type });
  await forms.act(page, { kind: 'type', ref, text, clear: true, allow });
  await rest();
  expect(words(await forms.snapshot(page))).toContain(JSON.stringify(['input', text, 'change', text]));
  await expect(forms.act(page, { kind: 'type', ref, text: other, clear: true, allow })).rejects.toMatchObject({
    fault: 'unfit',
  });
  const elsewhere = forms.act(page, { kind: 'type', ref, text, clear: true, allow: () => false });
  await expect(elsewhere).rejects.toMatchObject({ fault: 'foreign' });
});

test('HTTP Basic is answered for the origin that asked, once', async () => {
  expect(await forms.navigate(page, `${site.url}/basic`)).toEqual({ status: 401 });
  await rest();
  const asked = await forms.snapshot(page);
  expect(asked.basicAuth).toEqual({ origin: site.url, realm: 'The vault', refused: false });
  expect(words(asked)).toContain('Who are you?');
  const foreign = { username: 'alice', password: 'right', allow: () => false };
  await expect(forms.basicAuth(page, foreign)).rejects.toMatchObject({ fault: 'foreign', origin: site.url });
  expect(await forms.basicAuth(page, { username: 'alice', password: 'wrong', allow })).toEqual({ status: 401 });
  await rest();
  expect((await forms.snapshot(page)).basicAuth).toMatchObject({ refused: true });
  expect(await forms.basicAuth(page, { username: 'alice', password: 'right', allow })).toEqual({ status: 200 });
  await rest();
  const inside = await forms.snapshot(page);
  expect(inside).toMatchObject({ title: 'Welcome', httpStatus: 200 });
  expect(inside.basicAuth).toBeUndefined();
  expect(site.answers).toEqual(['alice:wrong', 'alice:right']);
});

test('a passkey is created in one page and used in another', async () => {
  const passkeyPage = async (pageId: string) => {
    expect(await forms.navigate(pageId, `${site.otherUrl}/passkey`)).toEqual({ status: 200 });
    await forms.settled(pageId, { deadlineMs: 30_000 });
    return forms.snapshot(pageId);
  };
  await forms.passkeys.enable(page);
  const first = await passkeyPage(page);
  await forms.act(page, { kind: 'click', ref: element(first, { id: 'create' }).ref });
  await expect.poll(async () => words(await forms.snapshot(page))).toContain('created');
  const [passkey] = await forms.passkeys.exported();
  expect(passkey).toMatchObject({ rpId: 'localhost', isResidentCredential: true, privateKey: expect.any(String) });

  const others = openForms(server.mux);
  const second = await others.open(`${site.otherUrl}/passkey`);
  await others.passkeys.add(second, [passkey!], () => false);
  expect(await others.passkeys.exported()).toEqual([]);
  await others.passkeys.add(second, [passkey!], allow);
  const snapshot = await others.snapshot(second);
  await others.act(second, { kind: 'click', ref: element(snapshot, { id: 'use' }).ref });
  await expect.poll(async () => words(await others.snapshot(second))).toContain('used');
  expect((await others.passkeys.exported())[0]!.signCount).toBeGreaterThan(passkey!.signCount);
  await others.close(second);
  others.dispose();
});

test('an element is found again by any of its selectors', async () => {
  const snapshot = await at('/login');
  for (const where of [{ name: 'user' }, { name: 'pass' }, { accessibleName: 'Sign in' }, { name: 'tenant' }] as const)
    for (const selector of element(snapshot, where).selectors) {
      const ref = await forms.find(page, ['#not-there', '][', selector]);
      expect(ref, selector).toBeDefined();
    }
  expect(await forms.find(page, ['input', '#not-there'])).toBeUndefined();
  const code = (await forms.find(page, ['input[name="code"]']))!;
  await forms.act(page, { kind: 'type', ref: code, text: '1234', allow });
  expect(element((await forms.snapshot(page)).frames[1]!, { name: 'code' }).filled).toBe(true);
});

test('a page that hangs is an error, and so are a page and an address that do not exist', async () => {
  const client = await RawClient.open(server.endpoint);
  const { sessionId } = await client.attachTo(page);
  void client.ask('Runtime.evaluate', { expression: 'for (;;);' }, sessionId);
  const hasty = openForms(server.mux, { main: 500, frame: 500, step: 500, reach: 100 });
  await expect(hasty.snapshot(page)).rejects.toMatchObject({ fault: 'frozen' });
  await hasty.settled(page, { deadlineMs: 500 });
  await expect(hasty.snapshot('nothing')).rejects.toMatchObject({ fault: 'page_gone' });
  hasty.dispose();
  await expect(hasty.snapshot(page)).rejects.toMatchObject({ fault: 'page_gone' });
  await client.close();

  const other = await forms.open(`${site.url}/welcome`);
  expect(await forms.navigate(other, 'http://127.0.0.1:1/')).toEqual({ error: 'net::ERR_UNSAFE_PORT' });
  expect(await forms.navigate(other, `${site.url}/round`)).toEqual({ error: 'net::ERR_TOO_MANY_REDIRECTS' });
  await expect(forms.navigate(other, 'file:///etc/passwd')).rejects.toMatchObject({ fault: 'unfit' });
  await forms.close(other);
});

test('what cannot be reached is not clicked', async () => {
  await at('/login');
  const hasty = openForms(server.mux, { ...usual, reach: 100 });
  const snapshot = await hasty.snapshot(page);
  for (const accessibleName of ['Covered', 'Disabled', 'Hidden'])
    await expect(
      hasty.act(page, { kind: 'click', ref: element(snapshot, { accessibleName }).ref }),
    ).rejects.toMatchObject({ fault: 'unreachable' });
  hasty.dispose();
});

test('other clients do not see that a page is read', async () => {
  const client = await RawClient.open(server.endpoint);
  const { sessionId } = await client.attachTo(page);
  await client.result('Runtime.enable', {}, sessionId);
  const snapshot = await at('/login');
  expect(snapshot.title).toBe('Sign in');
  const contexts = client.events('Runtime.executionContextCreated').map(({ params }) => params!['context']);
  expect(contexts.filter((context) => (context as { name: string }).name !== '')).toEqual([]);
  expect(await client.evaluate('typeof corralForms', sessionId)).toBe('undefined');
  await client.close();
});
