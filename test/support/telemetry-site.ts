import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { portOf } from './mux-server.ts';

const html = (body: string) => ({ type: 'text/html', body: `<!doctype html><meta charset="utf-8">${body}` });
const script = (body: string) => ({ type: 'text/javascript', body });

/** Pages that cause telemetry events. */
const pages: Record<string, { type: string; body: string | Buffer; headers?: Record<string, string> }> = {
  '/': html('<title>Start</title><h1 id="large">Start</h1><link rel="icon" href="data:,">'),
  '/popup': html('<title>Popup</title><script>console.log("popup says", window.early)</script>'),
  '/frame': html('<script>console.log("frame says")</script>'),
  '/worker.js': script('console.log("worker says"); fetch("/from-worker").then(() => postMessage("done"))'),
  '/service-worker.js': script('console.log("service worker says"); fetch("/from-service-worker")'),
  '/shift': html(`<p>Text</p><script>
    onload = () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
      const box = document.createElement('div');
      box.style.height = '200px';
      document.body.prepend(box);
    }, 100)));
  </script>`),
  '/form': html(`<style>body { height: 5000px; margin: 0 }</style>
    <button id="go">Go now</button><input id="name"><input id="secret" type="password" value="hunter2">
    <input id="code" autocomplete="one-time-code">`),
  '/captcha': html(`<title>Captcha</title><form>
    <textarea name="h-captcha-response"></textarea><textarea name="g-recaptcha-response"></textarea>
    <input name="cf-turnstile-response"></form>`),
  '/json': {
    type: 'application/json',
    body: JSON.stringify({ text: 'x'.repeat(20_000) }),
    headers: { 'set-cookie': 'a=planted-cookie' },
  },
  '/text': { type: 'text/plain', body: 'y'.repeat(20_000) },
  '/binary': { type: 'application/octet-stream', body: Buffer.from([0, 1, 2, 255]) },
  '/from-worker': { type: 'text/plain', body: 'for the worker' },
  '/from-service-worker': { type: 'text/plain', body: 'for the service worker' },
  '/posted': { type: 'application/json', body: '{"ok":true}' },
};

export async function telemetrySite() {
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://site');
    request.resume();
    if (pathname === '/redirect') return void response.writeHead(302, { location: '/text' }).end();
    if (pathname === '/endless') {
      open.add(response);
      return void response.writeHead(200, { 'content-type': 'text/html' }).write('<h1>The rest never comes</h1>');
    }
    if (pathname === '/embeds') {
      const { body, type } = html(`<iframe src="${searchParams.get('url')}"></iframe>`);
      return void response.writeHead(200, { 'content-type': type }).end(body);
    }
    const page = pages[pathname.replace(/^\/captcha\/.*/, '/captcha')];
    if (!page) return void response.writeHead(404, { 'content-type': 'text/plain' }).end('none');
    response.writeHead(200, { 'content-type': page.type, ...page.headers }).end(page.body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  return {
    url: `http://127.0.0.1:${port}`,
    /** Another site, and with isolation of sites another process. */
    otherUrl: `http://localhost:${port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
