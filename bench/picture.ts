/** One line of the picture: how long each lifecycle took, in the order they were run. */
export interface Series {
  name: string;
  colour: string;
  values: number[];
  median: number;
  /** What the median is held to, if anything. */
  bar?: number;
}

const width = 960;
const height = 460;
const left = 64;
const right = width - 210;
const top = 72;
const bottom = height - 56;

/**
 * Latency over lifecycles as an SVG: a dot for each, a line at each median, a dashed one at each bar. The scale is logarithmic:
 * on another one, what takes 40 ms would lie flat below what takes 400.
 */
export function lifecyclePicture(title: string, subtitle: string, series: readonly Series[]): string {
  const all = series.flatMap(({ values, bar = values[0]! }) => [...values, bar]);
  const ticks = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
  const least = ticks.findLast((tick) => tick <= Math.min(...all)) ?? ticks[0]!;
  const most = ticks.find((tick) => tick >= Math.max(...all)) ?? ticks.at(-1)!;
  const count = Math.max(...series.map(({ values }) => values.length));

  const x = (at: number) => left + ((at - 1) / Math.max(1, count - 1)) * (right - left);
  const y = (ms: number) => bottom - (Math.log(ms / least) / Math.log(most / least)) * (bottom - top);
  const line = (ms: number, style: string) =>
    `<line x1="${left}" x2="${right}" y1="${y(ms).toFixed(1)}" y2="${y(ms).toFixed(1)}" ${style}/>`;
  const text = (at: number, down: number, words: string, style = '') =>
    `<text x="${at}" y="${down.toFixed(1)}" ${style}>${words}</text>`;

  const grid = ticks
    .filter((tick) => tick >= least && tick <= most)
    .flatMap((tick) => [
      line(tick, 'stroke="#e3e6ea"'),
      text(left - 10, y(tick) + 4, `${tick}`, 'text-anchor="end" fill="#5b6470"'),
    ]);
  const numbers = [1, ...[1, 2, 3, 4].map((quarter) => Math.round((count * quarter) / 4))].map((at) =>
    text(x(at), bottom + 20, `${at}`, 'text-anchor="middle" fill="#5b6470"'),
  );
  const lines = series.flatMap(({ colour, values, median, bar }) => [
    `<g fill="${colour}" fill-opacity="0.45">${values
      .map((ms, at) => `<circle cx="${x(at + 1).toFixed(1)}" cy="${y(ms).toFixed(1)}" r="2.2"/>`)
      .join('')}</g>`,
    line(median, `stroke="${colour}" stroke-width="2"`),
    ...(bar === undefined ? [] : [line(bar, `stroke="${colour}" stroke-width="1.5" stroke-dasharray="6 5"`)]),
  ]);

  // Labels next to their lines, moved apart where lines are close.
  const labels = series
    .flatMap(({ name, colour, median, bar }) => [
      { at: y(median), words: `${name}: ${median.toFixed(0)} ms`, style: `fill="${colour}" font-weight="600"` },
      ...(bar === undefined ? [] : [{ at: y(bar), words: `bar: ${bar} ms`, style: `fill="${colour}"` }]),
    ])
    .sort((a, b) => a.at - b.at);
  let lowest = -Infinity;
  const words = labels.map(({ at, words, style }) => {
    lowest = Math.max(at + 4, lowest + 17);
    return text(right + 12, lowest, words, style);
  });

  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(left, 30, title, 'font-size="17" font-weight="600" fill="#1c232b"'),
    text(left, 51, subtitle, 'fill="#5b6470"'),
    ...grid,
    text(left - 10, top - 12, 'ms', 'text-anchor="end" fill="#5b6470"'),
    ...numbers,
    text(
      (left + right) / 2,
      bottom + 42,
      'lifecycle, in the order they were run',
      'text-anchor="middle" fill="#5b6470"',
    ),
    ...lines,
    ...words,
    '</svg>',
    '',
  ].join('\n');
}
