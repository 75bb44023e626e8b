import { createServer, type Server } from 'node:http';

/** The shop in the pictures, and the search engine that knows it. */

const style = `<meta name="viewport" content="width=device-width">
<style>
  body { margin: 0; font: 17px/1.5 system-ui, sans-serif; background: #f5f2ea; color: #26231d }
  header { background: #3c5a3a; color: #fff; padding: 18px 40px; font-size: 24px }
  main { display: grid; grid-template-columns: 1fr 1fr; gap: 12px 40px; max-width: 860px; padding: 28px 40px }
  label { display: block; font-weight: 600 } input, select, button { font: inherit; width: 100%; padding: 8px; box-sizing: border-box }
  input[type=color] { height: 44px; padding: 4px }
  @media (max-height: 420px) { body { overflow: hidden } header { padding-block: 10px } p:has(button) { display: none } }
  button { background: #3c5a3a; color: #fff; border: 0; width: auto; padding: 10px 28px }
</style>`;

const shop = `<!doctype html><html lang="en"><title>Order · Field & Fence</title>${style}
<header>Field &amp; Fence</header>
<main>
  <h2 style="grid-column: 1 / -1; margin: 0">Your order</h2>
  <label>Post and rail <select id="wood"><option>Larch<option>Oak<option>Robinia<option>Chestnut</select></label>
  <label>Delivery <input type="date" id="day" value="2026-12-01"></label>
  <label>Length in metres <input type="number" value="120"></label>
  <label>Plan of the meadow <input type="file" id="plan"></label>
  <p style="grid-column: 1 / -1"><a href="/price-list.csv" download>Price list</a> · delivery within ten days</p>
  <p><button>Place the order</button></p>
</main></html>`;

const gate = `<!doctype html><html lang="en"><title>Gate · Field & Fence</title>${style}
<header style="padding-block: 10px">Your gate</header>
<main>
  <label>Delivery <input type="date" id="day" value="2026-12-01"></label>
  <label>Colour <input type="color" id="colour" value="#3c5a3a"></label>
  <label>Village <input id="village" list="villages"></label>
  <p style="margin: 26px 0 0"><a href="/terms">Terms of delivery</a></p>
</main>
<datalist id="villages"><option>Ashby<option>Ashcombe<option>Brookfield<option>Little Ash<option>Meadow End</datalist></html>`;

const terms = `<!doctype html><html lang="en"><title>Terms · Field & Fence</title>
<body style="margin: 24px; font: 17px/1.5 system-ui, sans-serif; background: #f5f2ea; color: #26231d">
<h1 style="margin: 0 0 8px">Terms</h1><p>Paid on delivery, or within ten days.<p>Posts are guaranteed for eight winters.</html>`;

function results(words: string): string {
  const shown = words.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<!doctype html><html lang="en"><title>${shown} · Search</title>
    <body style="margin: 24px 40px; font: 17px/1.5 system-ui, sans-serif; background: #fff; color: #26231d">
    <h2 style="margin: 0">Results for “${shown}”</h2>
    <p><a href="/">Order · Field &amp; Fence</a><br>Posts and rails of larch, oak, robinia and chestnut.
    <p><a href="/gate">Gate · Field &amp; Fence</a><br>Gates in any colour, delivered to your village.</html>`;
}

export function shopServer(): Server {
  return createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop');
    if (pathname === '/price-list.csv')
      return void response.setHeader('Content-Type', 'text/csv').end('wood,metre\nlarch,9.50\noak,14.00\n');
    if (pathname === '/broken') return void request.socket.destroy();
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    if (pathname === '/search') return void response.end(results(searchParams.get('q') ?? ''));
    response.end({ '/terms': terms, '/gate': gate }[pathname] ?? shop);
  });
}
