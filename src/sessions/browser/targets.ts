import type { Engine } from '../../chromium/engine.ts';
import { isTargetList } from '../../chromium/cdp/shapes.ts';

/** Chromium's own windows and tabs around pages: its HTTP endpoint has pages, frames, workers and the like. */
const AROUND = new Set(['browser', 'browser_ui', 'tab']);

/** The targets that Chromium's own HTTP endpoint would list, without those of the service. */
export async function targetsOf(engine: Engine) {
  const { targetInfos } = await engine.control().ask(isTargetList, 'Target.getTargets');
  return targetInfos.filter(({ type }) => !AROUND.has(type));
}
