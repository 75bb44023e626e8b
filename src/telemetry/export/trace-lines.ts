import type { TelemetryEvent } from '../../lib/telemetry.ts';
import type { Exchange } from './exchanges.ts';
import { harEntry } from './har-entry.ts';
import { inMainFrame } from './pages.ts';
import { msOf, numberIn, textIn, type StoredEvent } from './source.ts';
import { actionOf, type Action } from './trace-actions.ts';

/**
 * The lines of a Playwright trace. Version 8 is written although there are newer ones: each viewer reads all versions up to
 * its own, so this opens in earlier releases of Playwright too.
 */
const traceVersion = 8;

/** The number of tabs with a remembered last navigation, to be ended by its load event. */
const mostTabs = 1000;

/** Actions that wait for the next picture. A session that is not photographed has none. */
const mostWaiting = 1000;

/** Screenshots show the display, whichever tab is in front. They get a row of their own above the timeline. */
const screen = 'screen';

export type Line = Record<string, unknown>;

export interface AboutTrace {
  sessionId: string;
  /** Unix microseconds of the session's start, for a trace without events. */
  startedAt: number;
}

/** Without it a viewer shows nothing: it comes first, and has the clock. All times of the trace are milliseconds since 1970. */
export function contextLine(about: AboutTrace, firstEvent: TelemetryEvent | undefined): Line {
  const startedAt = msOf(firstEvent?.ts ?? about.startedAt);
  return {
    version: traceVersion,
    type: 'context-options',
    origin: 'library',
    browserName: 'chromium',
    platform: 'linux',
    title: `Session ${about.sessionId}`,
    options: {},
    wallTime: startedAt,
    monotonicTime: startedAt,
    sdkLanguage: 'javascript',
  };
}

/** Turns the events of all categories except network into lines. `rest` ends the navigations that have no end. */
export function traceLines() {
  /** By tab. */
  const navigations = new Map<string, { callId: string; ended: boolean }>();
  let latest = 0;
  /** The latest picture, which shows the page before the next action. */
  let picture: string | undefined;
  /** Actions since then. The next picture shows their result. */
  let waiting: string[] = [];

  function began(callId: string, action: Omit<Action, 'endTime'>): Line[] {
    if (waiting.length < mostWaiting) waiting.push(callId);
    const line = { type: 'before', callId, stepId: callId, ...action };
    return picture ? [line, shot(callId, 'before', picture, action.startTime)] : [line];
  }

  function photographed({ seq, event }: StoredEvent): Line[] {
    const size = pngSize(textIn(event.data, 'png'));
    if (!size) return [];
    const timestamp = msOf(event.ts);
    const taken = (picture = screenshotName(seq));
    const after = waiting.map((callId) => shot(callId, 'after', taken, timestamp));
    waiting = [];
    return [{ type: 'screencast-frame', pageId: screen, sha1: taken, ...size, timestamp }, ...after];
  }

  function ended(targetId: string, at: number): Line[] {
    const navigation = navigations.get(targetId);
    if (!navigation || navigation.ended) return [];
    navigation.ended = true;
    return [{ type: 'after', callId: navigation.callId, endTime: at }];
  }

  function navigated({ seq, event: { ts, data } }: StoredEvent): Line[] {
    const [targetId, url] = [textIn(data, 'target_id') ?? '', textIn(data, 'url') ?? ''];
    if (!inMainFrame(data)) return [];
    const startTime = msOf(ts);
    const lines = ended(targetId, startTime);
    if (!navigations.has(targetId) && navigations.size >= mostTabs) {
      const oldest = navigations.keys().next().value!;
      lines.push(...ended(oldest, startTime));
      navigations.delete(oldest);
    }
    const callId = `call@${seq}`;
    navigations.set(targetId, { callId, ended: false });
    lines.push(
      ...began(callId, {
        title: `Navigate to "${url}"`,
        class: 'Frame',
        method: 'goto',
        params: { url },
        ...(targetId && { pageId: targetId }),
        startTime,
      }),
    );
    return lines;
  }

  /** A note in the log of the tab's navigation. */
  function noted({ event: { ts, data } }: StoredEvent, message: string): Line[] {
    const navigation = navigations.get(textIn(data, 'target_id') ?? '');
    return navigation ? [{ type: 'log', callId: navigation.callId, time: msOf(ts), message }] : [];
  }

  return {
    take(stored: StoredEvent): Line[] {
      const { seq, event } = stored;
      const { type, ts, data } = event;
      latest = Math.max(latest, msOf(ts));
      switch (type) {
        case 'page_navigation':
          return navigated(stored);
        case 'page_load':
          return [...noted(stored, 'the page has loaded'), ...ended(textIn(data, 'target_id') ?? '', msOf(ts))];
        case 'page_tab_opened':
          return [tabOpened(event)];
        case 'monitor_screenshot':
          return photographed(stored);
        case 'console_log':
        case 'console_error':
          return [message(event)];
      }
      const note = notes[type]?.(data);
      if (note !== undefined) return noted(stored, note);
      const action = actionOf(event);
      if (!action) return [];
      const { endTime, error, point, ...rest } = action;
      const callId = `call@${seq}`;
      return [
        ...began(callId, rest),
        { type: 'after', callId, endTime, ...(error && { error }), ...(point && { point }) },
      ];
    },

    rest(): Line[] {
      return [...navigations.keys()].flatMap((targetId) => ended(targetId, latest));
    },
  };
}

const notes: Record<string, (data: TelemetryEvent['data']) => string> = {
  page_dom_content_loaded: () => 'the content of the document is loaded',
  page_layout_settled: () => 'the layout has settled',
  page_navigation_settled: () => 'the navigation has settled',
  page_lcp: () => 'the largest content is painted',
  page_layout_shift: () => 'the layout shifts',
};

/** New viewers show it beside the action; viewers that do not know the line skip it. The file is `screenshotName`. */
function shot(callId: string, phase: 'before' | 'after', name: string, timestamp: number): Line {
  return { type: 'screenshot', callId, phase, pageId: screen, timestamp, file: `resources/${name}` };
}

function tabOpened({ ts, data }: TelemetryEvent): Line {
  const [pageId, openerPageId] = [textIn(data, 'target_id'), textIn(data, 'opener_id')];
  const params = { pageId, ...(openerPageId && { openerPageId }) };
  return { type: 'event', time: msOf(ts), class: 'BrowserContext', method: 'page', params };
}

function message({ type, ts, data, source }: TelemetryEvent): Line {
  const text = textIn(data, 'text') ?? '';
  const pageId = textIn(data, 'target_id');
  const location = {
    url: textIn(data, 'source_url') ?? textIn(data, 'url') ?? '',
    lineNumber: numberIn(data, 'line') ?? 0,
    columnNumber: numberIn(data, 'column') ?? 0,
  };
  const common = { time: msOf(ts), ...(pageId && { pageId }) };
  if (source.event === 'Runtime.exceptionThrown') {
    const error = { name: 'Error', message: text, stack: text };
    const at = { url: location.url, line: location.lineNumber, column: location.columnNumber };
    const params = { error: { error }, location: at };
    return { type: 'event', ...common, class: 'BrowserContext', method: 'pageError', params };
  }
  const args = Array.isArray(data?.['args']) ? data['args'].map((arg) => ({ preview: String(arg), value: arg })) : [];
  const messageType = textIn(data, 'level') ?? (type === 'console_error' ? 'error' : 'log');
  return { type: 'console', ...common, messageType, text, args, location };
}

/** A request, for trace.network. The body of its answer is a file of the archive when `bodyFile` is given. */
export function networkLine(exchange: Exchange, bodyFile: string | undefined): Line {
  const { pageref, ...entry } = harEntry(exchange);
  const { text: _text, ...content } = entry.response.content;
  return {
    type: 'resource-snapshot',
    snapshot: {
      ...entry,
      ...(pageref && exchange.page && { pageref: exchange.page.targetId }),
      response: { ...entry.response, content: { ...content, ...(bodyFile && { _sha1: bodyFile }) } },
      _monotonicTime: msOf(exchange.startedAt),
    },
  };
}

export function screenshotName(seq: number): string {
  return `screenshot-${seq}.png`;
}

export function bodyName(seq: number): string {
  return `body-${seq}.txt`;
}

/** Width and height are at a fixed place of every PNG. */
export function pngSize(base64: string | undefined): { width: number; height: number } | undefined {
  const head = Buffer.from((base64 ?? '').slice(0, 32), 'base64');
  if (head.length < 24 || head.toString('latin1', 1, 4) !== 'PNG') return undefined;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}
