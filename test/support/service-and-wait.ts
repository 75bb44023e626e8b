import { startService } from './service.ts';

/** A service of its own process, which says where it is and ends when its input does. */
export default async function serviceAndWait(settings: Record<string, string>) {
  const service = await startService(settings);
  console.log(JSON.stringify({ url: service.url, key: service.key }));
  process.stdin.resume().on('end', () => void service.close().then(() => process.exit()));
}
