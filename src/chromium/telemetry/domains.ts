import { needsBrowser, type Capture } from '../../lib/telemetry.ts';
import { isWorker } from './target.ts';

/** The parts of CDP that the collector uses on a target. */
export type Domain = 'page' | 'runtime' | 'network' | 'timeline' | 'script' | 'children';

/** What a target of this type has to emit for these categories, and no more: each domain costs the page time. */
export function domainsFor(capture: Capture, type: string): Set<Domain> {
  const domains = new Set<Domain>();
  if (capture.has('console')) domains.add('runtime');
  if (capture.has('network')) domains.add('network');
  if (isWorker(type)) {
    if (domains.size > 0) domains.add('children');
    return domains;
  }
  if (!needsBrowser(capture)) return domains;
  domains.add('page');
  if (capture.has('page')) domains.add('timeline');
  if (capture.has('interaction')) domains.add('runtime').add('script');
  if (domains.size > 1 || capture.has('captcha')) domains.add('children');
  return domains;
}

/** Whether new targets have to wait until the collector has prepared them, so that nothing is missed. */
function holdsNewTargets(capture: Capture): boolean {
  return capture.has('console') || capture.has('network') || capture.has('page') || capture.has('interaction');
}

/** The parameters of `Target.setAutoAttach`, for the browser or for the targets inside a page. */
export function autoAttach(capture: Capture, where: 'browser' | 'inside') {
  const workers = capture.has('console') || capture.has('network');
  const types =
    where === 'browser'
      ? ['page', 'background_page', 'webview', ...(workers ? ['service_worker', 'shared_worker'] : [])]
      : ['iframe', ...(workers ? ['worker'] : [])];
  return {
    autoAttach: needsBrowser(capture),
    waitForDebuggerOnStart: holdsNewTargets(capture),
    flatten: true,
    filter: types.map((type) => ({ type })),
  };
}
