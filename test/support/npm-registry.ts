import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { listenOnLoopback } from './listen.ts';

/** A registry on loopback that serves packages of this repository's own node_modules, as npm asks for them. */
export async function startRegistry(names: readonly string[] = ['@onkernel/sdk', 'playwright-core']) {
  const packages = new Map<string, { manifest: Record<string, unknown>; tarball: Buffer }>();
  for (const name of names) {
    const dir = resolve('node_modules', name);
    const args = ['-czf', '-', '--transform', 's,^\\.,package,', '-C', dir, '.'];
    const { stdout } = await promisify(execFile)('tar', args, { encoding: 'buffer', maxBuffer: 2 ** 28 });
    const manifest = JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')) as Record<string, unknown>;
    packages.set(name, { manifest, tarball: stdout });
  }
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/').slice(1);
    asked.push(path);
    const found = packages.get(path.replace(/\.tgz$/, ''));
    if (!found) return void response.writeHead(404).end('{}');
    const { manifest, tarball } = found;
    if (path.endsWith('.tgz')) return void response.end(tarball);
    const version = String(manifest['version']);
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
    const dist = { integrity, tarball: `http://${request.headers.host}/${path}.tgz` };
    const versions = { [version]: { ...manifest, scripts: {}, dist } };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name: path, 'dist-tags': { latest: version }, versions }));
  });
  const { port, close } = await listenOnLoopback(server);
  return { url: `http://127.0.0.1:${port}`, port, asked, close };
}
