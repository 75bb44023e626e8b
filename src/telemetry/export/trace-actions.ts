import type { TelemetryEvent } from '../../lib/telemetry.ts';
import { msOf, numberIn, textIn } from './source.ts';

/** What the viewer lists on the left: something that was done, with a title and how long it took. */
export interface Action {
  title: string;
  /** The viewer picks the icon and the group by these two; they are names of Playwright's own protocol. */
  class: string;
  method: string;
  params: Record<string, unknown>;
  pageId?: string;
  startTime: number;
  endTime: number;
  error?: { name: string; message: string };
  point?: { x: number; y: number };
}

type Reader = (event: TelemetryEvent) => Omit<Action, 'startTime' | 'endTime' | 'pageId'> & { duration?: number };

/** Events that are complete in themselves, each with its action. Navigations have a beginning and an end: trace-lines.ts. */
const readers: Record<string, Reader> = {
  interaction_click: ({ data }) => {
    const [x, y] = [numberIn(data, 'x'), numberIn(data, 'y')];
    return {
      title: `Click ${described(data)}`,
      class: 'Frame',
      method: 'click',
      params: pick(data, 'selector', 'text'),
      ...(x !== undefined && y !== undefined && { point: { x, y } }),
    };
  },
  interaction_key: ({ data }) => ({
    title: `Press "${textIn(data, 'key') ?? ''}" in ${described(data)}`,
    class: 'Frame',
    method: 'press',
    params: pick(data, 'selector', 'key'),
  }),
  interaction_scroll_settled: ({ data }) => ({
    title: `Scroll to ${numberIn(data, 'to_x') ?? 0}, ${numberIn(data, 'to_y') ?? 0}`,
    class: 'Page',
    method: 'mouseWheel',
    params: pick(data, 'from_x', 'from_y', 'to_x', 'to_y', 'target_selector'),
  }),
  api_call: ({ data }) => {
    const status = numberIn(data, 'status') ?? 0;
    return {
      ...service(`API ${textIn(data, 'operation_id') ?? 'call'}`, data),
      duration: numberIn(data, 'duration_ms') ?? 0,
      ...(status >= 400 && failure(`The call was answered with status ${status}.`)),
    };
  },
  cdp_connect: ({ data }) => service('A CDP client connects', data),
  cdp_disconnect: ({ data }) => service(`A CDP client leaves (${textIn(data, 'reason') ?? ''})`, data),
  live_view_connect: ({ data }) => service('A viewer connects', data),
  live_view_disconnect: ({ data }) => service('A viewer leaves', data),
  captcha_solve_result: ({ data }) => {
    const status = textIn(data, 'status') ?? '';
    return {
      ...service(`Captcha ${textIn(data, 'captcha_type') ?? ''}: ${status}`, data),
      duration: numberIn(data, 'duration_ms') ?? 0,
      ...(status !== 'success' && failure(`The captcha was not solved: ${status}.`)),
    };
  },
  system_oom_kill: ({ data }) => ({
    ...service(`Out of memory: ${textIn(data, 'process_name') ?? 'a process'} is killed`, data),
    ...failure('The session ran out of memory.'),
  }),
  service_crashed: ({ data }) => {
    const name = textIn(data, 'service_name') ?? 'A service';
    return { ...service(`${name} crashes`, data), ...failure(`${name} crashed (${textIn(data, 'phase') ?? ''}).`) };
  },
  monitor_disconnected: ({ data }) => service('The browser is started again', data),
  monitor_reconnected: ({ data }) => service('Telemetry of the browser goes on', data),
  monitor_reconnect_failed: ({ data }) => ({
    ...service('Telemetry of the browser ends', data),
    ...failure('The browser did not come back.'),
  }),
  monitor_init_failed: ({ data }) => ({
    ...service('Telemetry of the browser does not start', data),
    ...failure(`It failed at: ${textIn(data, 'step') ?? ''}.`),
  }),
};

export function actionOf(event: TelemetryEvent): Action | undefined {
  const read = Object.hasOwn(readers, event.type) ? readers[event.type] : undefined;
  if (!read) return undefined;
  const { duration = 0, ...action } = read(event);
  const endTime = msOf(event.ts);
  const pageId = textIn(event.data, 'target_id');
  return { ...action, ...(pageId && { pageId }), startTime: endTime - duration, endTime };
}

function service(title: string, data: TelemetryEvent['data']) {
  return { title, class: 'BrowserContext', method: 'telemetry', params: { ...data } };
}

function failure(message: string) {
  return { error: { name: 'Error', message } };
}

/** The text of a clicked element, or else where it is. */
function described(data: TelemetryEvent['data']): string {
  const text = textIn(data, 'text')?.replace(/\s+/g, ' ').trim();
  if (text) return `"${text.slice(0, 80)}"`;
  return textIn(data, 'selector') ?? textIn(data, 'tag') ?? 'the page';
}

function pick(data: TelemetryEvent['data'], ...keys: string[]): Record<string, unknown> {
  return Object.fromEntries(keys.flatMap((key) => (data?.[key] === undefined ? [] : [[key, data[key]]])));
}
