import { createServer, request as ask } from 'node:http';
import { connect } from 'node:net';

export const words = {
  name: 'Ada Lovelace',
  colour: 'green',
  note: 'a note from the tour',
  report: 'the report of the tour\n',
};

const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="description" content="A page to be driven"><title>Tour</title>
<h1>Tour</h1>
<p><button id="count">Count</button></p>
<p><label>Name <input id="name"></label></p>
<p><label>Colour <select id="colour"><option value="red">Red</option><option value="green">Green</option></select></label></p>
<p><label>File <input id="file" type="file"></label></p>
<p><a id="report" href="/report.txt">Report</a></p>
<p><button id="ask">Ask</button></p>
<script>
  const run = new URLSearchParams(location.search).get('run');
  const tell = (what) => fetch('/seen?run=' + run, { method: 'POST', body: what, keepalive: true });
  const on = (id, event, what) => document.getElementById(id).addEventListener(event, async (given) => tell(await what(given)));
  on('count', 'click', ({ isTrusted }) => isTrusted ? 'clicked' : 'clicked by a script');
  on('name', 'input', ({ target }) => 'typed ' + target.value);
  on('colour', 'change', ({ target }) => 'chose ' + target.value);
  on('file', 'change', async ({ target: { files: [file] } }) => 'got ' + file.name + ': ' + await file.text());
  on('ask', 'click', () => 'answered ' + confirm('Go on?'));
  tell('opened');
</script>`;

const second = `<!doctype html><title>Second</title><h1>Second</h1>
<script>fetch('/seen?run=' + new URLSearchParams(location.search).get('run'), { method: 'POST', body: 'second tab', keepalive: true })</script>`;

/** The page that every client is led through. It reports what happened to it, so that no client is judged by its own word. */
export async function startSite() {
  const told = new Map();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://site');
    if (pathname === '/seen') {
      let body = '';
      request
        .on('data', (chunk) => (body += chunk))
        .on('end', () => {
          const run = searchParams.get('run');
          told.set(run, [...(told.get(run) ?? []), body]);
          response.end();
        });
      return;
    }
    if (pathname === '/report.txt') {
      response.setHeader('content-disposition', 'attachment; filename="report.txt"');
      response.setHeader('content-type', 'text/plain');
      return void response.end(words.report);
    }
    response.setHeader('content-type', 'text/html');
    response.end(pathname === '/second' ? second : page);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  return {
    host: `127.0.0.1:${port}`,
    page: (run) => `http://127.0.0.1:${port}/?run=${run}`,
    second: (run) => `http://127.0.0.1:${port}/second?run=${run}`,
    told: (run) => told.get(run) ?? [],
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A proxy without credentials. It counts what it passed on. */
export async function startProxy() {
  let passed = 0;
  const server = createServer((request, response) => {
    passed += 1;
    const { method, headers, url } = request;
    const onward = ask(url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  server.on('connect', ({ url }, client, head) => {
    passed += 1;
    const { hostname, port } = new URL(`tunnel://${url}`);
    const onward = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.write(head);
      client.pipe(onward).pipe(client);
    });
    onward.on('error', () => client.destroy());
    client.on('error', () => onward.destroy());
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const host = `127.0.0.1:${server.address().port}`;
  return {
    host,
    url: `http://${host}`,
    passed: () => passed,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
