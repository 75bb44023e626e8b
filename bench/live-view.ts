import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser as Viewers, Page as ViewerPage } from 'playwright-core';
import { WebSocket } from 'ws';
import { firstPage, viewers, watched, type PageUnderTest, type Watched } from '../test/support/live-view.ts';
import { median, type Row } from './rows.ts';

const links = 10;
const changes = 20;
const watchMs = 5_000;

/** Moves a square over a gradient with text, as fast as the browser draws. A movement ends an earlier one, whose frames would count twice. */
const html = `<body style="margin:0;height:700px;background:linear-gradient(#fff,#9cf)"><p>${'Text that is read. '.repeat(150)}</p>
<div id="square" style="position:absolute;left:0;top:0;width:200px;height:200px;background:#393"></div>`;
const animation = `window.frames60 = 0; window.moving = {}; (function frame(mine) {
  if (moving !== mine) return;
  frames60 += 1;
  square.style.transform = 'translate(' + (frames60 % 600) + 'px,' + (frames60 % 400) + 'px)';
  requestAnimationFrame(() => frame(mine));
})(moving)`;

/** In the viewer: when the first picture was there, the pictures drawn since, and when a corner of the picture changed its colour. */
const observed = `(() => {
  window.drawn = 0;
  const drawImage = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (...args) {
    if (this.canvas.isConnected) drawn += 1;
    return drawImage.apply(this, args);
  };
  new MutationObserver((_, observer) => {
    if (document.documentElement?.dataset.state !== 'connected') return;
    window.connectedAt = performance.now(); // since the navigation began
    observer.disconnect();
  }).observe(document, { attributes: true, subtree: true });
  window.whenDark = (dark) => new Promise((resolve) => (function look() {
    const canvas = document.querySelector('#display canvas') ?? document.querySelector('#screen');
    const [red] = canvas.getContext('2d').getImageData(canvas.width - 40, canvas.height - 40, 1, 1).data;
    if (red < 128 === dark) resolve(Date.now());
    else setTimeout(look, 1);
  })());
})()`;

/** The frame rate and latency of the live view, and its cost for the page. A second Chromium on the same machine is the viewer. */
export async function benchLiveView(): Promise<Row[]> {
  const rows: Row[] = [];
  const looking = await viewers();
  try {
    for (const headless of [true, false]) {
      const session = await watched({ headless });
      try {
        const under = await firstPage(session);
        const measured = { session, under, name: headless ? 'headless' : 'headful', browser: looking.browser };
        rows.push(await firstPicture(measured), await changeToPixels(measured), ...(await movement(measured)));
        if (headless) rows.push(...(await counting(measured)));
        if (headless) rows.push(...(await together(measured)));
      } finally {
        await session.stop();
      }
    }
  } finally {
    await looking.stop();
  }
  return rows;
}

interface Measured {
  session: Watched;
  under: PageUnderTest;
  name: string;
  browser: Viewers;
}

/** Opens the link in a browser that has never seen the service. */
async function opened({ session, browser }: Measured): Promise<{ page: ViewerPage; close: () => Promise<void> }> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 850 } });
  const page = await context.newPage();
  await page.addInitScript(observed);
  await page.goto(session.url);
  await page.waitForSelector('html[data-state="connected"]', { timeout: 120_000 });
  return { page, close: () => context.close() };
}

async function firstPicture(measured: Measured): Promise<Row> {
  await measured.under.setContent(html);
  const times: number[] = [];
  for (let i = 0; i < links; i++) {
    const { page, close } = await opened(measured);
    times.push(Number(await page.evaluate('connectedAt')));
    await close();
  }
  const beside = `slowest ${Math.max(...times).toFixed(0)} ms, of ${links}; nothing in the viewer's cache`;
  return { what: `${measured.name}: link to first picture`, value: median(times), unit: 'ms', beside, bar: '≤ 500 ms' };
}

async function changeToPixels(measured: Measured): Promise<Row> {
  const { under, name } = measured;
  await under.setContent('<body style="margin:0;height:700px;background:#fff">');
  const { page, close } = await opened(measured);
  const times: number[] = [];
  for (let i = 0; i < changes; i++) {
    const dark = i % 2 === 0;
    const seen = page.evaluate(`whenDark(${dark})`);
    const changedAt = await under.evaluate(`document.body.style.background = '${dark ? '#000' : '#fff'}', Date.now()`);
    times.push(Number(await seen) - Number(changedAt));
    await sleep(300);
  }
  await close();
  const beside = `slowest ${Math.max(...times).toFixed(0)} ms, of ${changes}`;
  return { what: `${name}: change to pixels`, value: median(times), unit: 'ms', beside, bar: '≤ 100 ms' };
}

/** Pictures of a page that moves, in a real viewer: it draws on the same cores. */
async function movement(measured: Measured): Promise<Row[]> {
  const { session, under, name } = measured;
  await under.setContent(html);
  await under.evaluate(animation);
  const alone = await during({ under });
  const { page, close } = await opened(measured);
  await sleep(1000);
  const sent = () => [...session.connections].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
  const [drawnBefore, sentBefore] = [Number(await page.evaluate('drawn')), sent()];
  const watchedBy = await during({ under });
  const drawn = Number(await page.evaluate('drawn')) - drawnBefore;
  const { seconds } = watchedBy;
  const bytes = sent() - sentBefore;
  await close();
  await under.evaluate('moving = false');
  return [
    {
      what: `${name}: frames of a moving page, watched`,
      value: watchedBy.framesPerSecond,
      unit: '/s',
      ratio: watchedBy.framesPerSecond / alone.framesPerSecond,
      beside: `unwatched (${alone.framesPerSecond.toFixed(0)}/s)`,
      bar: '≥ 50/s on two cores',
    },
    { what: `${name}: pictures drawn in the viewer`, value: drawn / seconds, unit: '/s', bar: '≥ 20/s' },
    { what: `${name}: sent to the viewer`, value: bytes / seconds / 1024, unit: 'KiB/s' },
    {
      what: `${name}: service`,
      value: watchedBy.serviceShare,
      unit: '% of a core',
      beside: `unwatched ${alone.serviceShare.toFixed(1)} %`,
    },
  ];
}

/** The same page with a viewer that only counts pictures, as one elsewhere would cost. */
async function counting({ session, under, name }: Measured): Promise<Row[]> {
  await under.evaluate(animation);
  const socket = new WebSocket(session.socketUrl, { perMessageDeflate: false });
  let pictures = 0;
  socket.on('message', (_, isBinary) => {
    if (!isBinary) return;
    pictures += 1;
    socket.send('{"type":"ack"}');
  });
  await sleep(1000);
  pictures = 0;
  const { framesPerSecond, seconds } = await during({ under });
  const seen = pictures / seconds;
  socket.close();
  await under.evaluate('moving = false');
  return [
    {
      what: `${name}: frames, a viewer that only counts`,
      value: framesPerSecond,
      unit: '/s',
      bar: '≥ 50/s on two cores',
    },
    { what: `${name}: pictures that it counts`, value: seen, unit: '/s', bar: '≥ 20/s' },
  ];
}

/** What five viewers of one tab cost, beside one. They only count, as viewers elsewhere would. */
async function together({ session, under, name }: Measured): Promise<Row[]> {
  await under.evaluate(animation);
  const of = async (count: number) => {
    let pictures = 0;
    const sockets = Array.from({ length: count }, () => {
      const socket = new WebSocket(session.socketUrl, { perMessageDeflate: false });
      socket.on('message', (_, isBinary) => {
        if (!isBinary) return;
        pictures += 1;
        socket.send('{"type":"ack"}');
      });
      return socket;
    });
    await sleep(1000);
    pictures = 0;
    const measured = await during({ under });
    for (const socket of sockets) socket.close();
    return { ...measured, seen: pictures / measured.seconds / count };
  };
  const [one, five] = [await of(1), await of(5)];
  await under.evaluate('moving = false');
  return [
    {
      what: `${name}: service, five viewers of one tab`,
      value: five.serviceShare,
      unit: '% of a core',
      ratio: five.serviceShare / one.serviceShare,
      beside: `one viewer (${one.serviceShare.toFixed(1)} %); the viewers count in the same process`,
    },
    {
      what: `${name}: frames, five viewers of one tab`,
      value: five.framesPerSecond,
      unit: '/s',
      beside: `one viewer (${one.framesPerSecond.toFixed(0)}/s)`,
    },
    {
      what: `${name}: pictures that each of five counts`,
      value: five.seen,
      unit: '/s',
      beside: `one viewer (${one.seen.toFixed(0)}/s)`,
    },
  ];
}

async function during({ under }: Pick<Measured, 'under'>) {
  const started = performance.now();
  const before = Number(await under.evaluate('frames60'));
  const used = process.cpuUsage();
  await sleep(watchMs);
  const { user, system } = process.cpuUsage(used);
  const frames = Number(await under.evaluate('frames60')) - before;
  const seconds = (performance.now() - started) / 1000;
  return { framesPerSecond: frames / seconds, seconds, serviceShare: (user + system) / 10_000 / seconds };
}
