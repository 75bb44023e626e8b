/** The way to write one request: the SDK's method for it, and a typical body. */
export interface Example {
  /** The method of `@onkernel/sdk`. Without one the sample calls the route by its path. */
  readonly sdk?: string;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, string | number>>;
  /** The fields of a form by their names on the wire. */
  readonly form?: Readonly<Record<string, string | FileOnDisk>>;
  /** The same form as the SDK takes it. */
  readonly sdkForm?: Readonly<Record<string, unknown>>;
  /** A body that is a file and nothing else. */
  readonly file?: string;
  /** Where an answer of bytes is stored. */
  readonly saveAs?: string;
}

export class FileOnDisk {
  readonly path: string;
  constructor(path: string) {
    this.path = path;
  }
}
const zip = (name: string) => new FileOnDisk(`${name}.zip`);

/** Names of the resources of examples. With them, one example finds the resource of another. */
export const names: Readonly<Record<string, string>> = {
  browsers: 'demo',
  browser_pools: 'scrapers',
  profiles: 'alice',
  extensions: 'my-extension',
  credentials: 'alice-at-shop',
};

const day = { start: '2026-01-01T00:00:00Z', end: '2026-01-02T00:00:00Z' };

/** By method and path, as in the OpenAPI document. An operation that is not here needs nothing but its path. */
export const examples: Readonly<Record<string, Example>> = {
  'post /org/projects': { sdk: 'projects.create', body: { name: 'research' } },
  'get /org/projects': { sdk: 'projects.list' },
  'get /org/projects/{id}': { sdk: 'projects.retrieve' },
  'patch /org/projects/{id}': { sdk: 'projects.update', body: { name: 'research-2' } },
  'delete /org/projects/{id}': { sdk: 'projects.delete' },
  'get /org/projects/{id}/limits': { sdk: 'projects.limits.retrieve' },
  'patch /org/projects/{id}/limits': { sdk: 'projects.limits.update', body: { max_concurrent_sessions: 5 } },
  'get /org/limits': { sdk: 'organization.limits.retrieve' },
  'patch /org/limits': {
    sdk: 'organization.limits.update',
    body: { default_project_max_concurrent_sessions: 10 },
  },
  'post /org/api_keys': { sdk: 'apiKeys.create', body: { name: 'ci' } },
  'get /org/api_keys': { sdk: 'apiKeys.list' },
  'get /org/api_keys/{id}': { sdk: 'apiKeys.retrieve' },
  'patch /org/api_keys/{id}': { sdk: 'apiKeys.update', body: { name: 'ci-2' } },
  'delete /org/api_keys/{id}': { sdk: 'apiKeys.delete' },
  'post /org/api_keys/{id}/rotate': { sdk: 'apiKeys.rotate' },
  'get /audit-logs': { sdk: 'auditLogs.list', query: day },
  'get /audit-logs/export/chunk': { sdk: 'auditLogs.exportChunk', query: day, saveAs: 'audit.jsonl.gz' },

  'post /console/sign_in': { body: { code: '$CODE' } },

  'post /browsers': {
    sdk: 'browsers.create',
    body: { name: names['browsers'], headless: true, timeout_seconds: 600 },
  },
  'get /browsers': { sdk: 'browsers.list' },
  'get /browsers/{id_or_name}': { sdk: 'browsers.retrieve' },
  'patch /browsers/{id_or_name}': { sdk: 'browsers.update', body: { viewport: { width: 1280, height: 800 } } },
  'delete /browsers/{id_or_name}': { sdk: 'browsers.deleteByID' },
  'post /browsers/{id_or_name}/live_view_links': { body: { read_only: true, expires_in_seconds: 3600 } },
  'post /browsers/{id}/extensions': {
    sdk: 'browsers.loadExtensions',
    form: { 'extensions[0][name]': 'my-extension', 'extensions[0][zip_file]': zip('extension') },
    sdkForm: { extensions: [{ name: 'my-extension', zip_file: zip('extension') }] },
  },
  'post /browsers/{id}/curl': { sdk: 'browsers.curl', body: { url: 'https://example.com' } },
  'get /browsers/{id}/logs/stream': {
    sdk: 'browsers.logs.stream',
    query: { source: 'supervisor', supervisor_process: 'browser' },
  },
  'post /browsers/{id}/playwright/execute': {
    sdk: 'browsers.playwright.execute',
    body: { code: "await page.goto('https://example.com'); return await page.title();" },
  },
  'post /browsers/{id}/process/exec': { sdk: 'browsers.process.exec', body: { command: 'uname', args: ['-a'] } },
  'post /browsers/{id}/process/spawn': { sdk: 'browsers.process.spawn', body: { command: 'cat' } },
  'get /browsers/{id}/process/{process_id}/status': { sdk: 'browsers.process.status' },
  'get /browsers/{id}/process/{process_id}/stdout/stream': { sdk: 'browsers.process.stdoutStream' },
  'post /browsers/{id}/process/{process_id}/stdin': { sdk: 'browsers.process.stdin', body: { data_b64: 'aGVsbG8K' } },
  'post /browsers/{id}/process/{process_id}/kill': { sdk: 'browsers.process.kill', body: { signal: 'TERM' } },
  'post /browsers/{id}/process/{process_id}/resize': {
    sdk: 'browsers.process.resize',
    body: { rows: 40, cols: 120 },
  },
  'get /browsers/{id}/fs/read_file': {
    sdk: 'browsers.fs.readFile',
    query: { path: '/tmp/notes.txt' },
    saveAs: 'notes.txt',
  },
  'get /browsers/{id}/fs/download_dir_zip': {
    sdk: 'browsers.fs.downloadDirZip',
    query: { path: '/tmp' },
    saveAs: 'tmp.zip',
  },
  'get /browsers/{id}/fs/download_dir_zstd': { query: { path: '/tmp' }, saveAs: 'tmp.tar.zst' },
  'get /browsers/{id}/fs/list_files': { sdk: 'browsers.fs.listFiles', query: { path: '/tmp' } },
  'get /browsers/{id}/fs/file_info': { sdk: 'browsers.fs.fileInfo', query: { path: '/tmp/notes.txt' } },
  'put /browsers/{id}/fs/create_directory': { sdk: 'browsers.fs.createDirectory', body: { path: '/tmp/work' } },
  'put /browsers/{id}/fs/delete_file': { sdk: 'browsers.fs.deleteFile', body: { path: '/tmp/notes.txt' } },
  'put /browsers/{id}/fs/delete_directory': { sdk: 'browsers.fs.deleteDirectory', body: { path: '/tmp/work' } },
  'put /browsers/{id}/fs/move': {
    sdk: 'browsers.fs.move',
    body: { src_path: '/tmp/notes.txt', dest_path: '/tmp/old.txt' },
  },
  'put /browsers/{id}/fs/set_file_permissions': {
    sdk: 'browsers.fs.setFilePermissions',
    body: { path: '/tmp/notes.txt', mode: '0600' },
  },
  'post /browsers/{id}/fs/watch': { sdk: 'browsers.fs.watch.start', body: { path: '/tmp' } },
  'get /browsers/{id}/fs/watch/{watch_id}/events': { sdk: 'browsers.fs.watch.events' },
  'delete /browsers/{id}/fs/watch/{watch_id}': { sdk: 'browsers.fs.watch.stop' },
  'put /browsers/{id}/fs/write_file': {
    sdk: 'browsers.fs.writeFile',
    query: { path: '/tmp/notes.txt' },
    file: 'notes.txt',
  },
  'post /browsers/{id}/fs/upload': {
    sdk: 'browsers.fs.upload',
    form: { 'files[0][dest_path]': '/tmp/notes.txt', 'files[0][file]': new FileOnDisk('notes.txt') },
    sdkForm: { files: [{ dest_path: '/tmp/notes.txt', file: new FileOnDisk('notes.txt') }] },
  },
  'post /browsers/{id}/fs/upload_zip': {
    sdk: 'browsers.fs.uploadZip',
    form: { dest_path: '/tmp/work', zip_file: zip('files') },
  },
  'post /browsers/{id}/fs/upload_zstd': {
    form: { dest_path: '/tmp/work', archive: new FileOnDisk('files.tar.zst') },
  },
  'post /browsers/{id}/computer/click_mouse': { sdk: 'browsers.computer.clickMouse', body: { x: 200, y: 150 } },
  'post /browsers/{id}/computer/move_mouse': { sdk: 'browsers.computer.moveMouse', body: { x: 200, y: 150 } },
  'post /browsers/{id}/computer/drag_mouse': {
    sdk: 'browsers.computer.dragMouse',
    body: {
      path: [
        [100, 100],
        [300, 200],
      ],
    },
  },
  'post /browsers/{id}/computer/scroll': { sdk: 'browsers.computer.scroll', body: { x: 200, y: 150, delta_y: 3 } },
  'post /browsers/{id}/computer/type': { sdk: 'browsers.computer.typeText', body: { text: 'hello' } },
  'post /browsers/{id}/computer/press_key': { sdk: 'browsers.computer.pressKey', body: { keys: ['Return'] } },
  'post /browsers/{id}/computer/batch': {
    sdk: 'browsers.computer.batch',
    body: {
      actions: [
        { type: 'click_mouse', click_mouse: { x: 200, y: 150 } },
        { type: 'type_text', type_text: { text: 'hello' } },
      ],
    },
  },
  'post /browsers/{id}/computer/cursor': { sdk: 'browsers.computer.setCursorVisibility', body: { hidden: true } },
  'post /browsers/{id}/computer/screenshot': { sdk: 'browsers.computer.captureScreenshot', saveAs: 'screenshot.png' },
  'post /browsers/{id}/computer/get_mouse_position': { sdk: 'browsers.computer.getMousePosition' },
  'post /browsers/{id}/computer/clipboard/read': { sdk: 'browsers.computer.readClipboard' },
  'post /browsers/{id}/computer/clipboard/write': { sdk: 'browsers.computer.writeClipboard', body: { text: 'hello' } },
  'post /browsers/{id}/replays': { sdk: 'browsers.replays.start', body: { framerate: 10 } },
  'get /browsers/{id}/replays': { sdk: 'browsers.replays.list' },
  'get /browsers/{id}/replays/{replay_id}': { sdk: 'browsers.replays.download', saveAs: 'replay.mp4' },
  'post /browsers/{id}/replays/{replay_id}/stop': { sdk: 'browsers.replays.stop' },
  'get /browsers/{id_or_name}/thumbnail': { saveAs: 'thumbnail.jpg' },
  'get /browsers/{id}/telemetry/stream': { sdk: 'browsers.telemetry.stream' },
  'get /browsers/{id}/telemetry/events': { sdk: 'browsers.telemetry.events' },
  'get /browsers/{id}/telemetry/har': { saveAs: 'session.har' },
  'get /browsers/{id}/telemetry/trace': { saveAs: 'trace.zip' },

  'post /browser_pools': {
    sdk: 'browserPools.create',
    body: { name: names['browser_pools'], size: 2, headless: true },
  },
  'get /browser_pools': { sdk: 'browserPools.list' },
  'get /browser_pools/{id_or_name}': { sdk: 'browserPools.retrieve' },
  'patch /browser_pools/{id_or_name}': { sdk: 'browserPools.update', body: { size: 3 } },
  'delete /browser_pools/{id_or_name}': { sdk: 'browserPools.delete', body: { force: true } },
  'post /browser_pools/{id_or_name}/acquire': { sdk: 'browserPools.acquire', body: { acquire_timeout_seconds: 30 } },
  'post /browser_pools/{id_or_name}/release': {
    sdk: 'browserPools.release',
    body: { session_id: '$SESSION_ID', reuse: true },
  },
  'post /browser_pools/{id_or_name}/flush': { sdk: 'browserPools.flush' },

  'post /profiles': { sdk: 'profiles.create', body: { name: names['profiles'] } },
  'get /profiles': { sdk: 'profiles.list' },
  'get /profiles/{id_or_name}': { sdk: 'profiles.retrieve' },
  'patch /profiles/{id_or_name}': { sdk: 'profiles.update', body: { name: 'alice-2' } },
  'delete /profiles/{id_or_name}': { sdk: 'profiles.delete' },
  'get /profiles/{id_or_name}/download': { sdk: 'profiles.download', saveAs: 'profile.tar.zst' },

  'get /extensions': { sdk: 'extensions.list' },
  'post /extensions': { sdk: 'extensions.upload', form: { name: 'my-extension', file: zip('extension') } },
  'get /extensions/from_chrome_store': {
    sdk: 'extensions.downloadFromChromeStore',
    query: { url: 'https://chromewebstore.google.com/detail/ddkjiahejlhfcafbddmgiahcphecmpfh' },
    saveAs: 'extension.zip',
  },
  'get /extensions/{id_or_name}': { sdk: 'extensions.download', saveAs: 'extension.zip' },
  'delete /extensions/{id_or_name}': { sdk: 'extensions.delete' },
  'get /extensions/{id_or_name}/metadata': { sdk: 'extensions.get' },

  'post /proxies': {
    sdk: 'proxies.create',
    body: { name: 'office', type: 'custom', config: { host: 'proxy.example.com', port: 3128 } },
  },
  'get /proxies': { sdk: 'proxies.list' },
  'get /proxies/{id}': { sdk: 'proxies.retrieve' },
  'patch /proxies/{id}': { sdk: 'proxies.update', body: { name: 'office-2' } },
  'delete /proxies/{id}': { sdk: 'proxies.delete' },
  'post /proxies/{id}/check': { sdk: 'proxies.check' },

  'post /credentials': {
    sdk: 'credentials.create',
    body: {
      name: names['credentials'],
      domain: 'shop.example',
      values: { username: 'alice', password: '$SHOP_PASSWORD' },
    },
  },
  'get /credentials': { sdk: 'credentials.list' },
  'get /credentials/{id_or_name}': { sdk: 'credentials.retrieve' },
  'patch /credentials/{id_or_name}': { sdk: 'credentials.update', body: { values: { password: '$SHOP_PASSWORD' } } },
  'delete /credentials/{id_or_name}': { sdk: 'credentials.delete' },
  'get /credentials/{id_or_name}/totp-code': { sdk: 'credentials.totpCode' },

  'post /org/credential_providers': {
    sdk: 'credentialProviders.create',
    body: { name: 'passwords', provider_type: 'onepassword', token: '$PROVIDER_TOKEN' },
  },
  'get /org/credential_providers': { sdk: 'credentialProviders.list' },
  'get /org/credential_providers/{id}': { sdk: 'credentialProviders.retrieve' },
  'patch /org/credential_providers/{id}': { sdk: 'credentialProviders.update', body: { enabled: false } },
  'delete /org/credential_providers/{id}': { sdk: 'credentialProviders.delete' },
  'post /org/credential_providers/{id}/test': { sdk: 'credentialProviders.test' },
  'get /org/credential_providers/{id}/items': { sdk: 'credentialProviders.listItems' },

  'post /auth/connections': {
    sdk: 'auth.connections.create',
    body: { domain: 'shop.example', profile_name: names['profiles'], credential: { name: names['credentials'] } },
  },
  'get /auth/connections': { sdk: 'auth.connections.list' },
  'get /auth/connections/{id}': { sdk: 'auth.connections.retrieve' },
  'patch /auth/connections/{id}': { sdk: 'auth.connections.update', body: { health_check_interval: 3600 } },
  'delete /auth/connections/{id}': { sdk: 'auth.connections.delete' },
  'post /auth/connections/{id}/login': { sdk: 'auth.connections.login' },
  'post /auth/connections/{id}/submit': { sdk: 'auth.connections.submit', body: { fields: { code: '123456' } } },
  'post /auth/connections/{id}/codes': { body: { code: '123456' } },
  'post /auth/connections/{id}/cancel': {},
  'get /auth/connections/{id}/events': { sdk: 'auth.connections.follow' },
  'post /auth/connections/{id}/exchange': { body: { code: '$HANDOFF_CODE' } },
  'get /auth/connections/{id}/timeline': { sdk: 'auth.connections.timeline' },

  'get /deployments': { sdk: 'deployments.list' },
  'post /deployments': {
    sdk: 'deployments.create',
    form: { entrypoint_rel_path: 'index.ts', file: zip('app') },
  },
  'get /deployments/{id}': { sdk: 'deployments.retrieve' },
  'delete /deployments/{id}': { sdk: 'deployments.delete' },
  'get /deployments/{id}/events': { sdk: 'deployments.follow' },
  'get /apps': { sdk: 'apps.list' },
  'post /invocations': {
    sdk: 'invocations.create',
    body: { app_name: 'my-app', action_name: 'run', version: 'latest', payload: '{"url":"https://example.com"}' },
  },
  'get /invocations': { sdk: 'invocations.list' },
  'get /invocations/{id}': { sdk: 'invocations.retrieve' },
  'patch /invocations/{id}': { sdk: 'invocations.update', body: { status: 'failed' } },
  'get /invocations/{id}/browsers': { sdk: 'invocations.listBrowsers' },
  'delete /invocations/{id}/browsers': { sdk: 'invocations.deleteBrowsers' },
  'get /invocations/{id}/events': { sdk: 'invocations.follow' },
};
