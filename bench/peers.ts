import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { Pool } from 'undici';
import { rawChromium } from '../test/support/raw-chromium.ts';
import { spawnService } from '../test/support/process.ts';
import { Page } from './page.ts';

/** A browser's whole life for one page: from nothing to a loaded page to nothing. */
export type Lifecycle = (url: string) => Promise<void>;

/** The product as users start it: built, in a process of its own. */
export async function corral(dataDir: string, settings: Record<string, string>) {
  const service = await spawnService({ CORRAL_DATA_DIR: dataDir, CORRAL_LOG_LEVEL: 'info', ...settings });
  const key = (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
  const http = new Pool(service.url, { connections: 128, headersTimeout: 0 });

  async function call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const { statusCode, body: answer } = await http.request({
      method,
      path,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (statusCode >= 300) throw new Error(`${method} ${path} answered ${statusCode}: ${text}`);
    return text;
  }

  const create = async (): Promise<{ session_id: string; cdp_ws_url: string }> =>
    JSON.parse(await call('POST', '/browsers', { headless: true, timeout_seconds: 600 }));
  const remove = (id: string) => call('DELETE', `/browsers/${id}`);

  /** The number behind a metric's name. */
  async function metric(name: string): Promise<number> {
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await call('GET', '/metrics'))?.[1]);
  }

  return {
    pid: service.child.pid!,
    url: service.url,
    key,
    call,
    create,
    remove,

    /** Waits until the metric has the value; a spare that never comes should end the bench, not hang it. */
    async until(name: string, value: number) {
      for (const end = Date.now() + 60_000; (await metric(name)) !== value;) {
        if (Date.now() > end) throw new Error(`${name} did not become ${value} within a minute.`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },

    async raw(url: string) {
      const { session_id: id, cdp_ws_url: address } = await create();
      const page = await Page.open(address);
      await page.goto(url);
      page.close();
      await remove(id);
    },

    async playwright(url: string) {
      const { session_id: id, cdp_ws_url: address } = await create();
      const browser = await chromium.connectOverCDP(address);
      await browser.contexts()[0]!.pages()[0]!.goto(url);
      await browser.close();
      await remove(id);
    },

    async puppeteer(url: string) {
      const { session_id: id, cdp_ws_url: address } = await create();
      const browser = await puppeteer.connect({ browserWSEndpoint: address, defaultViewport: null });
      const [page] = await browser.pages();
      await page!.goto(url);
      await browser.disconnect();
      await remove(id);
    },

    async stop() {
      await http.close();
      await service.kill('SIGTERM');
    },
  };
}

/** Chromium with nothing around it: no sandbox but its own, no gateway, no service. */
export async function rawLifecycle(url: string): Promise<void> {
  const browser = await rawChromium('port');
  const page = await Page.open(browser.endpoint);
  await page.goto(url);
  page.close();
  await browser.stop();
}

/** `playwright run-server` with the same Chromium. It runs browsers as itself, and without Chromium's sandbox. */
export async function playwrightServer() {
  const cli = join(import.meta.dirname, '../node_modules/playwright-core/cli.js');
  const child = spawn(process.execPath, [cli, 'run-server', '--host', '127.0.0.1', '--port', '0', '--unsafe'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let output = '';
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const found = /(ws:\S+)/.exec(output)?.[1];
      if (found) resolve(found);
    });
    void exited.then(() => reject(new Error(`playwright run-server ended: ${output}`)));
  });
  const executablePath = process.env['CORRAL_TEST_HEADLESS_SHELL'] ?? '/usr/lib/chromium/chromium-headless-shell';
  const headers = {
    'x-playwright-browser': 'chromium',
    'x-playwright-launch-options': JSON.stringify({ headless: true, executablePath }),
  };
  const open = async (url: string) => {
    const browser = await chromium.connect(address, { headers });
    const page = await browser.newPage();
    await page.goto(url);
    return browser;
  };
  return {
    pid: child.pid!,
    open,
    async lifecycle(url: string) {
      const browser = await open(url);
      await browser.close();
    },
    async stop() {
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 5000);
      await exited;
      clearTimeout(late);
    },
  };
}

export function residentMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** The processor time of a process so far, in milliseconds; undefined when it has exited. */
export function processorMs(pid: number): number | undefined {
  if (!existsSync(`/proc/${pid}/stat`)) return undefined;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10; // a tick is a hundredth of a second
}
