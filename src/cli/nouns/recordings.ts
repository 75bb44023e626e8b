import type { Verb } from '../table.ts';

/** `corral browsers replays …` */
export const replays: readonly Verb[] = [
  {
    name: 'start',
    operation: 'startBrowserReplayRecording',
    examples: [
      ['my-session', 'until it is stopped, or the session ends'],
      ['my-session --framerate 15 --max-duration-in-seconds 60', 'with limits'],
    ],
  },
  {
    name: 'stop',
    operation: 'stopBrowserReplayRecording',
    done: 'Stopped.',
    examples: [
      ['my-session replay_1', 'and finish the video'],
      ['my-session replay_1 -o json', 'prints null'],
    ],
  },
  {
    name: 'list',
    operation: 'listBrowsersReplays',
    columns: ['replay_id', 'status', 'started_at', 'finished_at', 'size_bytes'],
    examples: [
      ['my-session', 'its videos'],
      ['my-session -o json', 'for a program'],
    ],
  },
  {
    name: 'download',
    operation: 'getBrowsersReplaysById',
    file: '{}.mp4',
    options: [['-f, --file <path>', 'the target file; - is stdout']],
    examples: [
      ['my-session replay_1', 'waits until the video is finished'],
      ['my-session replay_1 --file video.mp4', 'to a named file'],
    ],
    run: async (call) => (await import('../does/download.ts')).downloadReplay(call),
  },
];

/** `corral browsers telemetry …` */
export const telemetry: readonly Verb[] = [
  {
    name: 'follow',
    operation: 'streamBrowserTelemetry',
    options: [['--count <number>', 'end after so many events']],
    examples: [
      ['my-session', 'events from now on'],
      ['my-session -o json', 'a line of JSON for each event'],
    ],
    run: async (call) => (await import('../does/telemetry.ts')).follow(call),
  },
  {
    name: 'events',
    operation: 'readBrowserTelemetryEvents',
    columns: ['seq', 'event.ts', 'event.type', 'event.data'],
    examples: [
      ['my-session', 'stored events'],
      ['my-session --category network --limit 100 -o jsonl', 'of one kind'],
    ],
  },
  {
    name: 'export',
    operation: 'exportBrowserTelemetryHar',
    about: 'Write the events of a session to a file: a HAR, a Playwright trace, or every event as a line of JSON.',
    options: [
      ['--as <har|trace|jsonl>', 'har is the default'],
      ['-f, --file <path>', 'the target file; - is stdout'],
    ],
    examples: [
      ['my-session', 'to my-session.har'],
      ['my-session --as trace --file trace.zip', 'for the trace viewer of Playwright'],
    ],
    run: async (call) => (await import('../does/telemetry.ts')).exportTelemetry(call),
  },
];
