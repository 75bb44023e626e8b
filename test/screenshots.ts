import { mkdir } from 'node:fs/promises';
import { consolePictures } from './screenshots/console.ts';
import { liveViewPictures } from './screenshots/live-view.ts';
import { folder, type Scene } from './screenshots/scene.ts';
import { shopServer } from './screenshots/site.ts';
import { listenOnLoopback } from './support/listen.ts';
import { viewers } from './support/live-view.ts';
import { startService } from './support/service.ts';

/**
 * `npm run screenshots [-- NAME …]`: the pictures of the docs, taken of the real service with a second Chromium. Each has
 * a name, and what a person did before it was taken.
 */

const pictures = { ...liveViewPictures, ...consolePictures };
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(pictures, name));
if (unknown.length > 0)
  throw new Error(`There is no picture '${unknown[0]}'; there are ${Object.keys(pictures).join(', ')}.`);

await mkdir(folder, { recursive: true });
const { port, close } = await listenOnLoopback(shopServer());
const service = await startService({
  CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port}`,
  CORRAL_SEARCH_URL: `http://127.0.0.1:${port}/search?q=%s`,
  CORRAL_LOG_LEVEL: 'warn',
});
const looking = await viewers();
try {
  const scene: Scene = { service, site: `http://127.0.0.1:${port}/`, looking: looking.browser };
  for (const [name, take] of Object.entries(pictures))
    if (wanted.length === 0 || wanted.includes(name)) await take(scene, name);
} finally {
  await looking.stop();
  await service.close();
  await close();
}
