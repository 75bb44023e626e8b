import type Kernel from '@onkernel/sdk';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { chromium, type FileChooser } from 'playwright-core';
import { connect } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buffersUsed } from '../support/heap.ts';
import { startDownloads } from '../support/downloads-site.ts';
import { viewers } from '../support/live-view.ts';
import { askForFiles } from '../support/live-view-page.ts';
import { RawClient } from '../support/mux-server.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';
import { isolationHere } from '../support/sandbox.ts';
import { namesIn } from '../support/zip-names.ts';

const isolation = await isolationHere();
const home = '/home/corral';

describe.runIf(isolation.sandboxed)('files of a session', () => {
  let service: Service;
  let sdk: Kernel;
  let site: Awaited<ReturnType<typeof startDownloads>>;
  const sessions = { headless: '', headful: '' };

  beforeAll(async () => {
    site = await startDownloads();
    const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: `${site.host},${site.alias}` };
    service = await startService(settings, { timings: { standbyMs: 1000 } });
    sdk = service.sdk();
    for (const shape of ['headless', 'headful'] as const)
      sessions[shape] = (
        await sdk.browsers.create({ headless: shape === 'headless', timeout_seconds: 600 })
      ).session_id;
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
    site?.server.close();
  });

  const read = async (id: string, path: string) => (await sdk.browsers.fs.readFile(id, { path })).text();

  describe.each(['headless', 'headful'] as const)('%s', (shape) => {
    const id = () => sessions[shape];
    const fs = () => sdk.browsers.fs;

    test('a file is written, read, described, moved and deleted', async () => {
      await fs().writeFile(id(), Buffer.from('hello'), { path: `${home}/a/b/file.txt`, mode: '600' });
      expect(await read(id(), `${home}/a/b/file.txt`)).toBe('hello');
      expect(await fs().fileInfo(id(), { path: `${home}/a/b/file.txt` })).toMatchObject({
        name: 'file.txt',
        path: `${home}/a/b/file.txt`,
        size_bytes: 5,
        is_dir: false,
        mode: '-rw-------',
        mod_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      });
      await fs().writeFile(id(), Buffer.from('again'), { path: `${home}/a/b/file.txt` });
      await fs().setFilePermissions(id(), {
        path: `${home}/a/b/file.txt`,
        mode: '755',
        owner: 'corral',
        group: '1000',
      });
      expect((await fs().fileInfo(id(), { path: `${home}/a/b/file.txt` })).mode).toBe('-rwxr-xr-x');
      await fs().move(id(), { src_path: `${home}/a/b/file.txt`, dest_path: `/tmp/there/moved.txt` }); // to another file system
      expect(await read(id(), '/tmp/there/moved.txt')).toBe('again');
      await fs().deleteFile(id(), { path: '/tmp/there/moved.txt' });
      await expect(fs().fileInfo(id(), { path: '/tmp/there/moved.txt' })).rejects.toMatchObject({ status: 404 });
    });

    test('a person in the live view gives the page files, drops one, and saves downloads of the session; a read-only viewer cannot', async () => {
      const { browser_live_view_url: url, cdp_ws_url } = await sdk.browsers.retrieve(id());
      const watchLink = ((await service.call('POST', `/browsers/${id()}/live_view_links`, {})).body as { url: string })
        .url;
      const driver = await chromium.connectOverCDP(cdp_ws_url);
      const looking = await viewers();
      try {
        const page = driver.contexts()[0]!.pages()[0]!;
        page.setDefaultTimeout(60_000);
        await page.setContent(`<title>Give me files</title><input type="file" multiple id="input" hidden>
          <button onclick="input.click()" style="position:fixed;inset:0;width:100%;height:100%">Choose</button>`);
        await page.evaluate(`addEventListener('dragover', (event) => event.preventDefault());
          window.dropped = new Set();
          addEventListener('drop', async (event) => {
            event.preventDefault();
            const [file] = event.dataTransfer.files;
            dropped.add(file.name);
            document.title = 'Dropped ' + file.name + ': ' + (await file.text());
          })`);
        const look = async (address: string, title: string) => {
          const view = await looking.browser.newPage();
          view.setDefaultTimeout(60_000);
          await view.goto(address);
          await expect.poll(() => view.title()).toBe(`${title} – ${id()}`); // by then the browser asks the view for files
          await expect.poll(() => view.locator('html').getAttribute('data-state')).toBe('connected');
          return view;
        };
        const watching = await look(watchLink, 'Give me files');
        const view = await look(url!, 'Give me files');
        const box = (await view.locator('canvas:visible').boundingBox())!;
        const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
        const asked = view.waitForEvent('filechooser');
        await view.mouse.click(middle.x, middle.y);
        const large = Buffer.alloc(500_000, 'corral ');
        await (
          await asked
        ).setFiles([
          { name: '<b>small.txt', mimeType: 'text/plain', buffer: Buffer.from('from outside') },
          { name: 'empty', mimeType: 'text/plain', buffer: Buffer.alloc(0) },
          { name: 'large', mimeType: 'text/plain', buffer: large },
        ]);
        const given = `Promise.all([...input.files].map(async (file) => [file.name, (await file.text()).length]))`;
        await expect
          .poll(() => page.evaluate(given))
          .toEqual([
            ['<b>small.txt', 12],
            ['empty', 0],
            ['large', large.length],
          ]);
        expect(await watching.locator('#chooser').isVisible()).toBe(false);
        const dropping = (name: string) => `{
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(['let fall'], '${name}'));
          const place = { clientX: ${middle.x}, clientY: ${middle.y} };
          document.getElementById('stage').dispatchEvent(new DragEvent('drop', { dataTransfer, ...place, cancelable: true }));
        }`;
        await watching.evaluate(dropping('stray'));
        // The page has its files a moment before the view knows that they are sent, and the view sends nothing else until then.
        await expect
          .poll(() => view.evaluate(dropping('leaf')).then(() => page.title()), { interval: 1000 })
          .toBe('Dropped leaf: let fall');
        expect(await page.evaluate('[...dropped]')).toEqual(['leaf']);

        await page.evaluate(`location.href = '${site.url}file/in-the-view'`);
        await view.evaluate(`const make = URL.createObjectURL;
          URL.createObjectURL = (blob) => ((window.saved = blob), make.call(URL, blob))`);
        await view.locator('#files-button').click();
        await view.getByRole('button', { name: 'Save in-the-view' }).click({ timeout: 60_000 });
        await expect.poll(() => view.evaluate('window.saved?.text()')).toBe('downloaded');

        // A frame of another site has a process of its own.
        const whole = 'position:fixed;inset:0;width:100%;height:100%';
        await page.goto(`http://${site.alias}/`);
        await page.setContent(`<title>Around a frame</title><iframe src="${site.url}" style="${whole}"></iframe>`);
        const frame = page.frames()[1]!;
        await frame.setContent(
          `<input type="file" id="input" hidden><button onclick="input.click()" style="${whole}">Choose</button>`,
        );
        const around = await look(url!, 'Around a frame');
        let again: FileChooser | undefined;
        around.on('filechooser', (chooser) => (again = chooser));
        // A click that comes before the view has asked the frame is lost in a headless session.
        await expect
          .poll(() => around.mouse.click(middle.x, middle.y).then(() => again), { interval: 3000, timeout: 60_000 })
          .toBeDefined();
        await again!.setFiles({ name: 'framed', mimeType: 'text/plain', buffer: Buffer.from('in a frame') });
        await expect.poll(() => frame.evaluate(`input.files[0]?.text()`)).toBe('in a frame');
        await around.close();

        expect(await watching.locator('#chooser').isVisible()).toBe(false);
        expect(await watching.locator('#files-button').isVisible()).toBe(false);
        // What a watch link's page does not ask, its address does not answer. The other one's answer comes later than its would.
        const toWatcher = await askForFiles(watchLink, 'in-the-view.html');
        const toViewer = await askForFiles(`${url}&readOnly=false`, 'in-the-view.html');
        const answers = ['filesDone', 'downloads', 'saving', 'saveBytes', 'saved'];
        await expect.poll(toViewer).toEqual(expect.arrayContaining(answers));
        expect(toWatcher().filter((type) => answers.includes(type))).toEqual([]);
      } finally {
        await looking.stop();
        await driver.close();
      }
    });

    test.runIf(shape === 'headless')('directories are made, listed and deleted', async () => {
      await fs().createDirectory(id(), { path: `${home}/d/e/f`, mode: '700' });
      await fs().createDirectory(id(), { path: `${home}/d/e/f` });
      await fs().writeFile(id(), Buffer.from('x'), { path: `${home}/d/e/one` });
      const listed = await fs().listFiles(id(), { path: `${home}/d/e` });
      expect(
        listed.map(({ name, is_dir, size_bytes, mode }) => [name, is_dir, size_bytes, mode].join()).toSorted(),
      ).toEqual(['f,true,0,drwx------', 'one,false,1,-rw-r--r--']);
      await fs().deleteDirectory(id(), { path: `${home}/d` });
      await expect(fs().listFiles(id(), { path: `${home}/d` })).rejects.toMatchObject({ status: 404 });
    });

    test.runIf(shape === 'headless')(
      'several files are uploaded in one go, and a directory comes back as an archive',
      async () => {
        await fs().upload(id(), {
          files: [
            { dest_path: `${home}/up/one.txt`, file: new File(['one'], 'x') },
            { dest_path: `${home}/up/deep/two.txt`, file: new File(['two'], 'y') },
          ],
        });
        expect(await read(id(), `${home}/up/deep/two.txt`)).toBe('two');
        await sdk.browsers.process.exec(id(), { command: 'ln', args: ['-s', 'one.txt', `${home}/up/link`] });
        const archive = Buffer.from(await (await fs().downloadDirZip(id(), { path: `${home}/up` })).arrayBuffer());
        expect((await namesIn(archive)).toSorted()).toEqual(['deep/', 'deep/two.txt', 'link', 'one.txt']);
        await fs().uploadZip(id(), { dest_path: `${home}/copy`, zip_file: new File([archive], 'up.zip') });
        expect(await read(id(), `${home}/copy/link`)).toBe('one');
        expect(await read(id(), `${home}/copy/deep/two.txt`)).toBe('two');
        await expect(fs().downloadDirZip(id(), { path: `${home}/up/one.txt` })).rejects.toMatchObject({ status: 400 });
      },
    );
  });

  test('requests of the SDK to a session are served below its own address, with its token alone', async () => {
    const session = await sdk.browsers.retrieve(sessions.headless);
    const at = (path: string, init: RequestInit = {}) => fetch(`${session.base_url}/${path}`, init);
    const headers = { 'content-type': 'application/json' };
    const post = async (path: string, body: object) =>
      (await at(path, { method: 'POST', body: JSON.stringify(body), headers })).json();
    expect((await at('fs/write_file?path=/tmp/a.txt', { method: 'PUT', body: 'here\n' })).status).toBeLessThan(300);
    expect(await (await at('fs/read_file?path=/tmp/a.txt')).text()).toBe('here\n');
    expect(await post('process/exec', { command: 'cat', args: ['/tmp/a.txt'] })).toMatchObject({ exit_code: 0 });
    expect(await post('computer/get_mouse_position', {})).toMatchObject({ x: expect.any(Number) });
    expect(await post('playwright/execute', { code: 'return 6 * 7' })).toMatchObject({ success: true, result: 42 });
    expect(await (await at('logs/stream?source=path&path=/tmp/a.txt&follow=false')).text()).toContain('"here"');
    expect(await (await at('replays')).json()).toEqual([]);
    expect((await at('telemetry/events')).status).toBe(200);
    expect((await at('no/such/path', { method: 'POST', body: 'x' })).status).toBe(404);
    expect((await fetch(`${session.base_url}x/fs/read_file?path=/tmp/a.txt`)).status).toBe(401);
    const [start, end] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
    const paths: string[] = [];
    for await (const entry of sdk.auditLogs.list({ start: start!, end: end!, search: '/browser/kernel/' }))
      paths.push(entry.path);
    expect(new Set(paths)).toContain('/browser/kernel/{token}/process/exec');
    expect(paths.join()).not.toContain(new URL(session.base_url!).pathname.split('/').at(-1));
  });

  test('a file of the client’s own disk is refused with the way to upload it, and one of the session is uploaded', async () => {
    const { cdp_ws_url } = await sdk.browsers.retrieve(sessions.headless);
    const playwright = await chromium.connectOverCDP(cdp_ws_url);
    const page = playwright.contexts()[0]!.pages()[0]!;
    await page.setContent('<input type=file>');
    const cdp = await page.context().newCDPSession(page);
    const { root } = await cdp.send('DOM.getDocument');
    const { nodeId } = await cdp.send('DOM.querySelector', { nodeId: root.nodeId, selector: 'input' });
    const choose = (path: string) => cdp.send('DOM.setFileInputFiles', { nodeId, files: [path] });
    await sdk.browsers.fs.writeFile(sessions.headless, Buffer.from('mine'), { path: '/tmp/mine.txt' });
    // Only root can look into a session's own /tmp.
    const others = process.getuid?.() === 0 ? ['/tmp/letter.txt'] : [];
    for (const path of ['/Users/me/letter.txt', `${home}/letter.txt`, ...others])
      await expect(choose(path), path).rejects.toThrow(`There is no file ${path} in the session.`);
    await choose('/tmp/mine.txt');
    expect(await page.evaluate('document.querySelector("input").files[0].text()')).toBe('mine');
    await playwright.close();
  });

  test.each(['headless', 'headful'] as const)(
    'what the browser downloads is found under its own name, %s',
    async (shape) => {
      const { cdp_ws_url } = await sdk.browsers.retrieve(sessions[shape]);
      await sdk.browsers.process.exec(sessions[shape], { command: 'sh', args: ['-c', 'rm -f ~/Downloads/*'] });
      const names = async () => {
        const listed = await sdk.browsers.fs.listFiles(sessions[shape], { path: `${home}/Downloads` }).catch(() => []);
        return listed.map(({ name }) => name).toSorted();
      };
      const fetchIt = (url: string) => `location.href = ${JSON.stringify(url)}`;

      // By a client that knows nothing of downloads.
      const puppeteer = await connect({ browserWSEndpoint: cdp_ws_url, defaultViewport: null });
      const [page] = await puppeteer.pages();
      await page!.goto(site.url);
      await page!.evaluate(fetchIt(`${site.url}file/plain.txt`));
      await expect.poll(names).toEqual(['plain.txt']);

      // The same name again, in a context of its own.
      const context = await puppeteer.createBrowserContext();
      const another = await context.newPage();
      await another.goto(site.url);
      await another.evaluate(fetchIt(`${site.url}file/plain.txt`));
      await expect.poll(names).toEqual(['plain (1).txt', 'plain.txt']);
      await context.close();
      await puppeteer.disconnect();

      // By a client that names a directory of its own machine, and by a client that names a directory of the session.
      const playwright = await chromium.connectOverCDP(cdp_ws_url);
      const theirs = playwright.contexts()[0]!.pages()[0]!;
      const download = theirs.waitForEvent('download');
      await theirs.evaluate(fetchIt(`${site.url}file/theirs.txt`)).catch(() => {});
      expect((await download).suggestedFilename()).toBe('theirs.txt');
      expect(await (await download).failure()).toBeNull(); // complete, so it has its name
      expect(await read(sessions[shape], `${home}/Downloads/theirs.txt`)).toBe('downloaded');
      const cdp = await playwright.newBrowserCDPSession();
      await cdp.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: `${home}/chosen` });
      await theirs.evaluate(fetchIt(`${site.url}file/chosen.txt`)).catch(() => {});
      await expect.poll(() => read(sessions[shape], `${home}/chosen/chosen.txt`).catch(() => '')).toBe('downloaded');
      await playwright.close();

      // By WebDriver BiDi, with a directory that only its own machine has.
      const { webdriver_ws_url } = await sdk.browsers.retrieve(sessions[shape]);
      const bidi = await RawClient.open(webdriver_ws_url);
      await bidi.result('session.new', { capabilities: {} });
      const downloadBehavior = { type: 'allowed', destinationFolder: '/Users/me/Downloads' };
      await bidi.result('browser.setDownloadBehavior', { downloadBehavior });
      const { contexts } = await bidi.result<{ contexts: { context: string }[] }>('browsingContext.getTree', {});
      const [{ context: tab } = { context: '' }] = contexts;
      await bidi.ask('browsingContext.navigate', { context: tab, url: `${site.url}file/bidi.txt` });
      await expect.poll(() => read(sessions[shape], `${home}/Downloads/bidi.txt`).catch(() => '')).toBe('downloaded');
      await bidi.close();

      // By code beside it, which has the file in its own hands, too.
      const { result } = await sdk.browsers.playwright.execute(sessions[shape], {
        code: `const download = page.waitForEvent('download');
        await page.evaluate(url => { location.href = url }, '${site.url}file/beside.txt');
        await (await download).saveAs('${home}/saved.txt');
        return (await download).suggestedFilename();`,
      });
      expect(result).toBe('beside.txt');
      expect(await read(sessions[shape], `${home}/saved.txt`)).toBe('downloaded');
      await expect.poll(names).toEqual(['beside.txt', 'bidi.txt', 'plain (1).txt', 'plain.txt', 'theirs.txt']);
    },
  );

  const id = () => sessions.headless;

  /** A form in exactly this order. */
  function form(path: string, parts: { name: string; value: string; filename?: string }[]) {
    const boundary = 'corral-boundary';
    const body = parts
      .map(({ name, value, filename }) => {
        const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`;
        return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
      })
      .join('');
    const type = { 'content-type': `multipart/form-data; boundary=${boundary}` };
    return service.call('POST', `/browsers/${id()}/fs/${path}`, `${body}--${boundary}--\r\n`, type);
  }

  test('the parts of a form come in any order and spelling', async () => {
    const answer = await form('upload', [
      { name: 'files[1][file]', value: 'second', filename: 'b' },
      { name: 'files[0].file', value: 'first', filename: 'a' },
      { name: 'files.0.dest_path', value: `${home}/forms/first` },
      { name: 'files[1][dest_path]', value: `${home}/forms/second` },
    ]);
    expect(answer).toMatchObject({ status: 201, text: '' });
    expect(await read(id(), `${home}/forms/first`)).toBe('first');
    expect(await read(id(), `${home}/forms/second`)).toBe('second');
    const short = await form('upload', [
      { name: 'dest_path', value: `${home}/forms/third` },
      { name: 'file', value: 'third', filename: 'c' },
    ]);
    expect(short.status).toBe(201);
  });

  test('a form that lacks something is refused, and leaves nothing', async () => {
    const lacking = await form('upload', [
      { name: 'files[0][file]', value: 'a', filename: 'a' },
      { name: 'files[0][dest_path]', value: `${home}/none/a` },
      { name: 'files[1][file]', value: 'b', filename: 'b' },
    ]);
    expect(lacking).toMatchObject({ status: 400, body: { message: 'files[1] lacks its dest_path.' } });
    expect(await form('upload', [])).toMatchObject({ status: 400 });
    expect(await form('upload', [{ name: 'other', value: 'a' }])).toMatchObject({ status: 400 });
    expect(await form('upload', [{ name: 'dest_path', value: 'relative' }])).toMatchObject({ status: 400 });
    expect(await form('upload_zip', [{ name: 'dest_path', value: '/tmp/x' }])).toMatchObject({ status: 400 });
    expect(await service.call('POST', `/browsers/${id()}/fs/upload`, {})).toMatchObject({ status: 415 });
    const left = await sdk.browsers.fs.listFiles(id(), { path: home });
    expect(left.map(({ name }) => name).filter((name) => name.includes('corral-') || name === 'none')).toEqual([]);
  });

  test('a directory is downloaded and uploaded as tar and zstd, and entries outside of it are refused', async () => {
    const sh = (script: string) => sdk.browsers.process.exec(id(), { command: 'sh', args: ['-c', script] });
    await sh('mkdir -p ~/tar/deep; echo one >~/tar/one; echo two >~/tar/deep/two; ln -s one ~/tar/link');
    const headers = { authorization: `Bearer ${service.key}` };
    const packed = await fetch(
      `${service.url}/browsers/${id()}/fs/download_dir_zstd?path=${home}/tar&compression_level=fastest`,
      { headers },
    );
    expect([packed.status, packed.headers.get('content-type')]).toEqual([200, 'application/zstd']);
    const unpack = async (archive: Blob, more: Record<string, string> = {}) => {
      const form = new FormData();
      form.append('archive', archive, 'a.tar.zst');
      for (const [name, value] of Object.entries({ dest_path: `${home}/untar`, ...more })) form.append(name, value);
      const answer = await fetch(`${service.url}/browsers/${id()}/fs/upload_zstd`, {
        method: 'POST',
        headers,
        body: form,
      });
      return [answer.status, ((await answer.json().catch(() => ({}))) as { code?: string }).code];
    };
    expect(await unpack(await packed.blob(), { strip_components: '1' })).toEqual([201, undefined]);
    expect(await read(id(), `${home}/untar/deep/two`)).toBe('two\n');
    expect(await read(id(), `${home}/untar/link`)).toBe('one\n');

    const hostile = {
      climbing: 'tar -P -I zstd --transform "s,one,../evil," -cf ~/a.tar.zst one',
      absolute: 'tar -P -I zstd --transform "s,one,/tmp/evil," -cf ~/a.tar.zst one',
      linked: 'ln -sf /etc/passwd evil; tar -I zstd -cf ~/a.tar.zst evil',
      pipe: 'mkfifo pipe; tar -I zstd -cf ~/a.tar.zst pipe',
      none: 'echo no archive >~/a.tar.zst',
    };
    for (const [what, script] of Object.entries(hostile)) {
      await sh(`cd ~/tar && ${script}`);
      const archive = await (await sdk.browsers.fs.readFile(id(), { path: `${home}/a.tar.zst` })).blob();
      expect(await unpack(archive, { dest_path: `${home}/hostile` }), what).toEqual([400, 'bad_archive']);
    }
    await expect(sdk.browsers.fs.listFiles(id(), { path: `${home}/hostile` })).rejects.toMatchObject({ status: 404 });
    expect(await unpack(new Blob(['x']), { strip_components: '-1' })).toEqual([400, 'invalid_input']);
  });

  test.each([
    ['GET', 'read_file?path=/none', undefined, 404, 'path_not_found'],
    ['GET', `read_file?path=${home}`, undefined, 400, 'wrong_kind_of_file'],
    ['GET', 'read_file?path=relative', undefined, 400, 'invalid_input'],
    ['GET', 'read_file', undefined, 400, 'invalid_input'],
    ['GET', 'list_files?path=/etc/passwd', undefined, 400, 'wrong_kind_of_file'],
    ['GET', `list_files?path=/${'x'.repeat(300)}`, undefined, 400, 'bad_path'],
    ['GET', 'download_dir_zip?path=/none', undefined, 404, 'path_not_found'],
    ['PUT', 'delete_file', { path: home }, 400, 'wrong_kind_of_file'],
    ['PUT', 'delete_file', { path: '/etc/passwd' }, 403, 'permission_denied'],
    ['PUT', 'delete_directory', { path: '/etc/passwd' }, 400, 'wrong_kind_of_file'],
    ['PUT', 'delete_directory', { path: '/' }, 403, 'permission_denied'],
    ['PUT', 'delete_directory', { path: `${home}/` }, 403, 'permission_denied'],
    ['PUT', 'create_directory', { path: '/usr/mine' }, 403, 'permission_denied'],
    ['PUT', 'create_directory', { path: '/etc/passwd' }, 400, 'path_exists'],
    ['PUT', 'create_directory', { path: '/tmp/x', mode: 'rwx' }, 400, 'invalid_input'],
    ['PUT', 'move', { src_path: '/none', dest_path: '/tmp/x' }, 404, 'path_not_found'],
    ['PUT', 'move', { src_path: home, dest_path: '/tmp/x' }, 403, 'permission_denied'],
    ['PUT', 'set_file_permissions', { path: home, mode: '755', owner: 'root' }, 400, 'invalid_input'],
    ['PUT', 'set_file_permissions', { path: home, mode: '755', owner: '0' }, 403, 'permission_denied'],
    ['PUT', 'set_file_permissions', { path: '/none', mode: '755' }, 404, 'path_not_found'],
  ])('%s %s is refused with a reason', async (method, path, body, status, code) => {
    const answer = await service.call(method, `/browsers/${id()}/fs/${path}`, body);
    expect([answer.status, answer.body?.code]).toEqual([status, code]);
    expect(answer.body.message).toMatch(/[.]$/);
  });

  test('writes of an empty body and to a system directory are refused', async () => {
    const put = (path: string, body: string) =>
      service.call('PUT', `/browsers/${id()}/fs/write_file?path=${path}`, body, { 'content-type': 'text/plain' });
    expect(await put(`${home}/empty`, '')).toMatchObject({ status: 400, body: { code: 'empty_file' } });
    expect(await put('/etc/mine', 'x')).toMatchObject({ status: 403 });
    expect(await put('/etc/passwd/x', 'x')).toMatchObject({ status: 400 });
    expect(await put(home, 'x')).toMatchObject({ status: 400, body: { code: 'wrong_kind_of_file' } });
    expect(await put(`${home}/json`, '{"is":"a file"}')).toMatchObject({ status: 201 });
  });

  test('a client that goes away in the middle leaves the file as it was', async () => {
    await sdk.browsers.fs.writeFile(id(), Buffer.from('before'), { path: `${home}/kept` });
    const request = http.request(`${service.url}/browsers/${id()}/fs/write_file?path=${home}/kept`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${service.key}`, 'content-length': 10_000_000 },
    });
    request.on('error', () => {});
    request.write(Buffer.alloc(3_000_000));
    const parts = async () =>
      (await sdk.browsers.fs.listFiles(id(), { path: home })).filter(({ name }) => name.endsWith('.part'));
    await expect.poll(async () => (await parts()).length).toBe(1);
    request.destroy();
    await expect.poll(async () => (await parts()).length).toBe(0);
    expect(await read(id(), `${home}/kept`)).toBe('before');
  });

  test('many megabytes go in and out as they are, without the service keeping them', async () => {
    const size = 256 * 1024 * 1024;
    const block = Buffer.alloc(64 * 1024, 'corral');
    const hash = (send: (block: Buffer) => void) => {
      const sum = createHash('sha256');
      return { add: (chunk: Buffer) => (sum.update(chunk), send(chunk)), digest: () => sum.digest('hex') };
    };
    const before = buffersUsed();
    let [peak, chunks] = [0, 0];
    const look = () => void (chunks++ % 256 === 0 && (peak = Math.max(peak, buffersUsed() - before)));
    const headers = { authorization: `Bearer ${service.key}` };
    const url = `${service.url}/browsers/${id()}/fs`;
    const request = http.request(`${url}/write_file?path=${home}/large`, { method: 'PUT', headers });
    const sent = hash(() => {});
    for (let at = 0; at < size; at += block.length) {
      sent.add(block);
      if (!request.write(block)) await once(request, 'drain');
      look();
    }
    request.end();
    const [written] = (await once(request, 'response')) as [http.IncomingMessage];
    expect(written.resume().statusCode).toBe(201);

    const [file] = (await once(http.get(`${url}/read_file?path=${home}/large`, { headers }), 'response')) as [
      http.IncomingMessage,
    ];
    expect(file.headers['content-length']).toBe(String(size));
    const received = hash(look);
    for await (const chunk of file) received.add(chunk as Buffer);
    expect(received.digest()).toBe(sent.digest());
    expect(peak).toBeLessThan(size / 2); // of the client and the service, which are one process here
    await sdk.browsers.fs.deleteFile(id(), { path: `${home}/large` });
  });

  test('a download that the client cancels releases the session', async () => {
    await sdk.browsers.process.exec(id(), { command: 'truncate', args: ['-s', '50M', `${home}/sparse`] });
    const file = await sdk.browsers.fs.readFile(id(), { path: `${home}/sparse` });
    await file.body!.cancel();
    await expect.poll(() => service.app.sessions.running(id())!.standingBy, { timeout: 60_000 }).toBe(true);
  });
});
