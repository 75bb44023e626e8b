import { cleanUrl, cutText } from './redact.ts';
import { isTimelineEvent } from './shapes.ts';
import { contextOf, type Target } from './target.ts';
import type { Watch } from './watch.ts';

const FROM = 'PerformanceTimeline.timelineEventAdded';

/** page_layout_shift and page_lcp. Chromium reports their times in seconds, clients read milliseconds. */
export function timelineEvents({ client, targets, emit, captures }: Watch, onShift: (target: Target) => void) {
  client.on(FROM, isTimelineEvent, ({ event }, sessionId) => {
    const target = targets.get(sessionId);
    if (!target || !captures('page')) return;
    const { frameId, layoutShiftDetails: shift, lcpDetails: paint } = event;
    const where = { ...contextOf(target, { frameId }), source_frame_id: frameId, time: event.time * 1000 };
    if (event.type === 'layout-shift' && shift) {
      onShift(target);
      emit({
        type: 'page_layout_shift',
        from: FROM,
        target,
        data: {
          ...where,
          duration: event.duration ?? 0,
          layout_shift_details: { value: shift.value, had_recent_input: shift.hadRecentInput },
        },
      });
    } else if (event.type === 'largest-contentful-paint' && paint) {
      emit({
        type: 'page_lcp',
        from: FROM,
        target,
        data: {
          ...where,
          lcp_details: {
            size: paint.size,
            ...(paint.elementId !== undefined && { element_id: cutText(paint.elementId, 256) }),
            ...(paint.url !== undefined && { url: cleanUrl(paint.url) }),
            ...(paint.nodeId !== undefined && { node_id: paint.nodeId }),
            load_time: paint.loadTime * 1000,
            render_time: paint.renderTime * 1000,
          },
        },
      });
    }
  });
}
