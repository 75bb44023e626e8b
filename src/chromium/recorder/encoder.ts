import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { logTail } from '../sandbox/log-tail.ts';
import type { Claim, Owners } from '../sandbox/owners.ts';
import { startHelper } from '../sandbox/entry.ts';

/** How ffmpeg is confined; see entry.ts. */
export interface Confinement {
  readonly sandboxed: boolean;
  /** Each ffmpeg runs as a different user: it reads a session's data while others read those of other sessions. */
  readonly owners: Owners;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** ffmpeg. It gets pictures as they come; each lasts until the next. */
interface Encoder {
  /** False when ffmpeg is behind; `drained` resolves when it has caught up. Pictures may be skipped. */
  feed(picture: Buffer): boolean;
  drained(): Promise<void>;
  /** No more pictures; `output` ends after the last one. */
  end(): void;
  /** H.264 in fragmented MP4: the part written so far is always playable. */
  readonly output: Readable;
  /** Settles once, when ffmpeg has exited. */
  readonly exited: Promise<{ failed: boolean; lastWords: string[] }>;
  kill(): void;
}

/**
 * The most pixels of a picture and of a video. ffmpeg is outside of the session and its limits: a page of 16,000 by 16,000 pixels took
 * 3.4 GB of it.
 */
export const MOST_PIXELS = 3840 * 2160;

/** Whether ffmpeg is installed. */
export const canEncode = () => ['/usr/local/bin', '/usr/bin', '/bin'].some((folder) => existsSync(`${folder}/ffmpeg`));

/** Interval of key frames and fragments: a killed ffmpeg loses at most this much. */
const FRAGMENT_SECONDS = 2;

export function startEncoder(
  options: { pictures: 'pixels' | 'jpeg'; size: Size; framerate: number },
  confinement: Confinement,
): Encoder {
  const { pictures, framerate } = options;
  const { width, height } = options.size;
  const pixels = ['-f', 'rawvideo', '-pixel_format', 'bgr0', '-video_size', `${width}x${height}`];
  const [w, h] = [even(width), even(height)];
  const source = pictures === 'pixels' ? [...pixels, '-framerate', String(framerate)] : ['-f', 'mpjpeg'];
  const args: string[] = [];
  const add = (...words: string[]) => args.push(...words);
  add('-hide_banner', '-loglevel', 'error', '-nostdin', '-fflags', 'nobuffer');
  add('-probesize', '32', '-analyzeduration', '0', '-use_wallclock_as_timestamps', '1');
  add('-max_pixels', String(MOST_PIXELS), ...source, '-i', 'pipe:0');
  // Pictures of any size are scaled to the video's one size. It is even, because colours have half the resolution.
  add('-vf', `scale=${w}:${h}:force_original_aspect_ratio=decrease,pad=${w}:${h}:(ow-iw)/2:(oh-ih)/2`);
  add('-an', '-fps_mode', 'vfr', '-enc_time_base', '1:1000');
  add('-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-crf', '27', '-pix_fmt', 'yuv420p');
  add('-threads', '1', '-g', '600', '-force_key_frames', `expr:gte(t,n_forced*${FRAGMENT_SECONDS})`);
  add('-movflags', 'frag_keyframe+empty_moov+default_base_moof', '-f', 'mp4', 'pipe:1');
  const { sandboxed, owners } = confinement;
  const owner = owners.claim();
  const child = startHelper(['ffmpeg', ...args], { sandboxed, owner }, ['pipe', 'pipe', 'pipe']);
  const { stdin, stdout } = child;
  const words = logTail(child.stderr);
  stdin!.on('error', () => {}); // it died; `exited` reports it
  const exited = new Promise<{ failed: boolean; lastWords: string[] }>((resolve) => {
    child.once('error', (error) => resolve({ failed: true, lastWords: [error.message] }));
    child.once('close', (code) => resolve({ failed: code !== 0, lastWords: words() }));
  });
  void exited.then(() => owner.release());

  return {
    feed(picture) {
      if (stdin!.writableEnded || stdin!.destroyed) return true;
      if (pictures === 'jpeg') {
        stdin!.write(`--corral\r\nContent-Type: image/jpeg\r\nContent-Length: ${picture.length}\r\n\r\n`);
        stdin!.write(picture);
        return stdin!.write('\r\n');
      }
      return stdin!.write(picture);
    },
    drained: () =>
      new Promise((resolve) => {
        if (!stdin!.writableNeedDrain || stdin!.destroyed) return resolve();
        const done = () => {
          stdin!.off('drain', done).off('close', done);
          resolve();
        };
        stdin!.once('drain', done).once('close', done);
      }),
    end: () => void stdin!.end(),
    output: stdout!,
    exited,
    kill: () => void child.kill('SIGKILL'),
  };
}

/** Moves the index to the front and merges the fragments, so that a player can start and seek at once. */
export async function makeFast(
  from: number,
  to: number,
  confinement: { sandboxed: boolean; owner: Claim },
  signal: AbortSignal,
): Promise<boolean> {
  const args = ['-hide_banner', '-loglevel', 'error', '-nostdin', '-i', 'pipe:0', '-c', 'copy'];
  args.push('-movflags', '+faststart', '-f', 'mp4', '-y', '/proc/self/fd/3');
  const child = startHelper(['ffmpeg', ...args], confinement, [from, 'ignore', 'ignore', to]);
  const kill = () => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  try {
    return await new Promise((resolve) => {
      child.once('error', () => resolve(false));
      child.once('exit', (code) => resolve(code === 0));
    });
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

const even = (n: number) => n + (n % 2);
