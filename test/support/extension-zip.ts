import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

/** A zip of these files. A mode other than a file's makes a link or a device of it. */
export async function zipOf(
  files: Record<string, string | Buffer | { content: string; mode: number }>,
): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [name, content] of Object.entries(files)) {
    if (name.endsWith('/')) zip.addEmptyDirectory(name);
    else if (typeof content === 'object' && 'mode' in content)
      zip.addBuffer(Buffer.from(content.content), name, { mode: content.mode });
    else zip.addBuffer(Buffer.from(content as string), name, { compress: content.length > 0 }); // thousands of empty ones take seconds
  }
  zip.end();
  return buffer(zip.outputStream);
}

/**
 * A real extension: its content script asks its service worker, which counts in its own storage, and writes the answer into the page
 * under `data-<mark>`.
 */
export const extensionFiles = (mark: string): Record<string, string> => ({
  'manifest.json': JSON.stringify({
    manifest_version: 3,
    name: `Marks pages with ${mark}`,
    version: '1.0',
    permissions: ['storage'],
    background: { service_worker: 'worker.js' },
    content_scripts: [{ matches: ['<all_urls>'], js: ['scripts/content.js'], run_at: 'document_start' }],
  }),
  'worker.js': `const answers = new Map();
  const count = () => chrome.storage.local.get('count').then(async ({ count = 0 }) => {
    await chrome.storage.local.set({ count: count + 1 });
    return '${mark} ' + (count + 1);
  });
  chrome.runtime.onMessage.addListener((page, sender, answer) => {
    if (!answers.has(page)) answers.set(page, count());
    answers.get(page).then(answer);
    return true;
  });`,
  // A worker that has not run yet hears nothing, and the browser refuses the message: a page can be there before it. On a busy machine a
  // message to the worker of a browser that was killed and started again got neither an answer nor an error, once in hundreds of runs: it
  // is sent again, and the worker counts each page once.
  'scripts/content.js': `const page = Math.random();
  const root = document.documentElement;
  const ask = () => chrome.runtime.sendMessage(page).then(
    (answer) => { root.dataset['${mark}'] = answer; },
    () => setTimeout(ask, 50),
  );
  ask();
  const again = setInterval(() => root.dataset['${mark}'] === undefined ? ask() : clearInterval(again), 5000);`,
});
