/* oxlint-disable vitest/expect-expect -- `until` expects */
import { afterEach, expect, test } from 'vitest';
import { isCreated } from '../../src/chromium/cdp/shapes.ts';
import { localClient } from '../../src/chromium/cdp/local-client.ts';
import type { PageUnderTest, Watched } from './live-view.ts';
import { BUTTON, GROUND, isRed, READ_ONLY, until, type Open } from './live-view-page.ts';

/**
 * The tests of what headless browsers do in a way of their own: their tabs, and the popups that they do not paint. The small browser and the
 * full one pass the same ones. Call them in the `describe` of a session, whose page is `under`.
 */
type Here = () => { session: Watched; under: PageUnderTest };

/** Closes the tabs that a test leaves. */
export function closesTabs(here: Here): void {
  afterEach(async () => {
    const { session, under } = here();
    for (const { targetId } of await session.pages())
      if (targetId !== under.targetId) await session.cdp.send('Target.closeTarget', { targetId }).catch(() => {}); // it may be closing already
    await until(async () => (await session.pages()).length).toBe(1); // the next viewer would begin with the tab that goes
  });
}

export function followsTabs(open: Open, here: Here): void {
  test('follows a page that the shown one opens', async () => {
    const { session, under } = here();
    const view = await open(session, under);
    await under.evaluate(
      `button.onclick = () => { const page = open('about:blank'); page.document.title = 'Opened'; }`,
    );
    await view.click(BUTTON);
    await until(view.shown).toBe('Opened');
    await view.page.locator('.tab[data-shown] .close').click();
    await until(view.shown).toBe('Under test');
  });

  test('follows the driver to the tab that it makes or brings to the front, unless the viewer stays', async () => {
    const { session, under } = here();
    const driver = localClient((sink) => session.mux.attach(sink));
    const [view, watching] = [await open(session, under), await open(session, under, READ_ONLY)];
    const front = (targetId: string) => driver.send('Target.activateTarget', { targetId });
    const url = 'data:text/html,<title>Made</title><body style="background:red">';
    const { targetId } = await driver.ask(isCreated, 'Target.createTarget', { url });
    for (const each of [view, watching]) {
      await until(each.shown).toBe('Made');
      await until(async () => isRed(await each.colour(GROUND))).toBe(true);
    }
    await until(() => view.page.title()).toBe('Made – A <session>');
    await front(under.targetId);
    for (const each of [view, watching]) {
      await until(each.shown).toBe('Under test');
      await until(() => each.colour(GROUND)).toEqual([255, 255, 255]);
    }
    expect(await view.page.locator('#title').innerText()).toBe('A <session>');
    await watching.page.locator('#follow').click();
    // The service hears of it after the click. When it shows what the viewer asks for next, it has.
    await watching.page.getByRole('tab', { name: 'Made' }).click();
    await until(watching.shown).toBe('Made');
    await front(targetId);
    await until(view.shown).toBe('Made');
    await front(under.targetId);
    await until(view.shown).toBe('Under test');
    expect(await watching.shown()).toBe('Made');
    await watching.page.locator('#follow').click();
    await until(watching.shown).toBe('Under test');
    driver.close();
  });
}

/** A full browser paints only the tab in front. */
export function followsTheFront(open: Open, here: Here): void {
  test('follows a tab that comes to the front by itself, and none that opens behind it', async () => {
    const { session, under } = here();
    const view = await open(session, under);
    await view.page.evaluate(`window.shown = new Set(); new MutationObserver(() =>
      shown.add(document.querySelector('.tab[data-shown] .name')?.textContent)).observe(document.getElementById('tabs'), { childList: true })`);
    const make = (title: string, background: boolean) =>
      session.cdp.ask(isCreated, 'Target.createTarget', { url: `data:text/html,<title>${title}</title>`, background });
    await make('First', false);
    await until(view.shown).toBe('First');
    await make('Behind', true);
    await until(() => view.page.locator('.tab .name').allInnerTexts()).toContain('Behind');
    await make('Last', false);
    await until(view.shown).toBe('Last');
    expect(await view.page.evaluate('[...shown]')).not.toContain('Behind');
  });
}

/** Pickers are in a second column. */
const PICKERS = [
  { id: 'day', type: 'date', from: '2020-01-31', to: '2024-02-29', top: 100 },
  { id: 'month', type: 'month', from: '2020-01', to: '2024-02', top: 200 },
  { id: 'week', type: 'week', from: '2020-W05', to: '2024-W09', top: 300 },
  { id: 'time', type: 'time', from: '10:00', to: '23:59', top: 400 },
  { id: 'moment', type: 'datetime-local', from: '2020-01-31T10:00', to: '2024-02-29T23:59', top: 500 },
];

const controls = `<title>Under test</title><body style="margin:0;background:#fff">
  <style>select, input, a { position: absolute; left: 100px; width: 200px; height: 30px; box-sizing: border-box }</style>
  <select id="list" style="top:100px"><option>one<option disabled>two<optgroup label="<b>More</b>"><option value="3">
    &lt;i&gt;three<option>four</optgroup></select>
  <input id="colour" type="color" style="top:200px">
  <input id="town" list="towns" style="top:400px"><datalist id="towns"><option value="Rome"><option value="Paris"></datalist>
  <a href="data:text/html,<title>Linked</title>" style="top:500px">A link</a>
  ${PICKERS.map(({ id, type, from, top }) => `<input id="${id}" type="${type}" value="${from}" style="left:700px;top:${top}px">`).join('\n  ')}`;
const recorder = `window.seen = []; for (const name of ['input', 'change', 'contextmenu'])
  addEventListener(name, ({ target, isTrusted }) => seen.push([name, target.id, isTrusted].join(' ')), true)`;

export function drawsPopups(open: Open, here: Here): void {
  test('draws the popups that a headless browser does not paint, and takes the choice', async () => {
    const { session, under } = here();
    await under.setContent(controls);
    await under.evaluate(recorder);
    const view = await open(session, under);
    const popup = view.page.locator('#popup');
    const valueOf = (id: string) => under.evaluate(`${id}.value`);
    // While one is drawn, the next click would close it instead of opening another, and the next one would be taken for open already.
    const isGone = () => until(() => popup.isVisible()).toBe(false);

    await view.click({ x: 150, y: 115 });
    await until(() => popup.locator('option').allInnerTexts()).toEqual(['one', 'two', '<i>three', 'four']);
    expect(await popup.locator('optgroup').getAttribute('label')).toBe('<b>More</b>');
    const chosen = (style: string) =>
      view.page.evaluate(
        `getComputedStyle(document.querySelector('#popup option:checked')).getPropertyValue('${style}')`,
      );
    expect(await chosen('-webkit-text-fill-color')).toBe('rgb(255, 255, 255)');
    expect(await chosen('background-image')).toContain('rgb(47, 95, 168)');
    await popup.getByRole('option', { name: 'four' }).click();
    await until(() => valueOf('list')).toBe('four');
    await until(() => under.evaluate('seen')).toEqual(['input list true', 'change list true']);
    await isGone();
    await view.page.keyboard.press('Space');
    await until(() => popup.isVisible()).toBe(true);
    await view.page.keyboard.press('ArrowUp');
    await view.page.keyboard.press('Enter');
    await until(() => valueOf('list')).toBe('3');
    await isGone();
    await view.click({ x: 150, y: 115 });
    await until(() => popup.isVisible()).toBe(true);
    await view.page.keyboard.press('Escape');
    await until(() => under.evaluate(`list.matches(':open')`)).toBe(false);
    expect(await valueOf('list')).toBe('3');
    await isGone();

    // Pickers open at the right end of their fields.
    const values = PICKERS.map(({ id, to, top }) => ({ id, to, x: 888, y: top + 15 }));
    for (const { id, to, ...place } of [{ id: 'colour', to: '#12ab34', x: 150, y: 215 }, ...values]) {
      await view.click(place);
      await popup.locator('input').fill(to);
      await popup.getByRole('button', { name: 'Set' }).click();
      await until(() => valueOf(id)).toBe(to);
      await until(() => under.evaluate('seen')).toContain(`change ${id} false`);
      await isGone();
    }

    await view.click({ x: 150, y: 415 });
    await view.page.keyboard.type('ri');
    await until(() => popup.locator('option').allInnerTexts()).toEqual(['Paris']);
    expect(await popup.locator('option:checked').count()).toBe(0);
    await view.page.keyboard.press('ArrowDown');
    await view.page.keyboard.press('Enter');
    await until(() => valueOf('town')).toBe('Paris');
  });

  test('draws lists of frames in their place, and a menu where the page has none', async () => {
    const { session, under } = here();
    const frame = `<select id=inner style='position:absolute;left:10px;top:10px'><option>a<option>b</select>`;
    const iframe = (left: number, more: string) =>
      `<iframe ${more} srcdoc="${frame}" style="position:absolute;left:${left}px;top:20px;width:200px;height:60px"></iframe>`;
    await under.setContent(controls + iframe(100, '') + iframe(400, 'sandbox="allow-scripts"'));
    await until(() => under.evaluate(`!!frames[0]?.document.getElementById('inner')`)).toBe(true);
    await under.evaluate(recorder);
    const view = await open(session, under);
    const popup = view.page.locator('#popup');
    for (const left of [100, 400]) {
      await view.click({ x: left + 22, y: 42 });
      await until(() => popup.locator('option').allInnerTexts()).toEqual(['a', 'b']);
      expect((await popup.boundingBox())!.x).toBeGreaterThan((await view.at({ x: left, y: 0 })).x);
      await popup.getByRole('option', { name: 'b' }).click();
      await until(() => popup.isVisible()).toBe(false);
    }
    await until(() => under.evaluate('frames[0].inner.value')).toBe('b');

    await view.click({ x: 120, y: 510 }, 'right');
    await popup.getByRole('menuitem', { name: 'Open link in new tab' }).click();
    await until(view.shown).toBe('Linked');
    await view.page.getByRole('tab', { name: 'Under test' }).click();
    await until(view.shown).toBe('Under test');
    await until(() => view.colour(GROUND)).toEqual([255, 255, 255]);
    await under.evaluate(`addEventListener('contextmenu', (event) => event.preventDefault())`);
    await view.click(GROUND, 'right');
    await until(() => under.evaluate('seen.length')).toBe(2);
    await view.click({ x: 150, y: 115 });
    await until(() => popup.locator('option').count()).toBe(4);
    expect(await popup.getAttribute('role')).toBe('group');
  });
}
