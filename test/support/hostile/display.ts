import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../random.ts';

/** A display server that lies about lengths and sizes, sends halves, and falls silent. */
export function hostileDisplay(random: Random) {
  const dir = mkdtempSync(join(tmpdir(), 'corral-rfb-'));
  const path = join(dir, 's');
  const sockets = new Set<net.Socket>();
  let said = 0;
  const u16 = () => [random(256), random(256)];
  const size = () => (random(3) === 0 ? u16() : [random(4), random(256)]);

  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    const write = (bytes: Buffer | string) => {
      said += 1;
      if (!socket.destroyed && socket.writableLength < 1024 * 1024) socket.write(bytes);
    };
    write(random(10) === 0 ? 'RFB 9' : 'RFB 003.008\n');
    let step = 0;
    socket.on('data', () => {
      step += 1;
      if (random(12) === 0) return;
      if (random(40) === 0) return void socket.destroy();
      if (step === 1) return write(Buffer.from(random(6) === 0 ? [random(256), 1, 2] : [1, 1]));
      if (step === 2) return write(Buffer.from(random(8) === 0 ? [0, 0, 0, 1] : [0, 0, 0, 0]));
      if (step === 3) {
        const screen = random(5) === 0 ? [...u16(), ...u16()] : [3, 32, 2, 88];
        const name = random(5) === 0 ? [...u16(), ...u16()] : [0, 0, 0, 1];
        return write(Buffer.from([...screen, random(6) === 0 ? random(256) : 32, ...Array(15).fill(0), ...name, 65]));
      }
      for (let more = 1 + random(3); more > 0; more--) write(message());
    });
  });
  server.listen(path);

  function message(): Buffer {
    switch (random(8)) {
      case 0:
        return Buffer.from([2]);
      case 1:
        return Buffer.from([3, 0, 0, 0, ...(random(3) === 0 ? [...u16(), ...u16()] : [0, 0, 0, 2]), 65, 66]);
      case 2:
        return Buffer.from([random(256)]);
      default: {
        const rectangles = random(10) === 0 ? u16() : [0, 1];
        const encodings = [
          [0, 0, 0, 0],
          [0xff, 0xff, 0xff, 0x11], // the pointer's shape
          [0x57, 0x4d, 0x56, 0x66],
          [0xff, 0xff, 0xff, 0x21], // the desktop's size
          [0xff, 0xff, 0xfe, 0xcc],
          [...u16(), ...u16()],
        ];
        const head = [0, 0, ...rectangles, ...u16(), ...u16(), ...size(), ...size(), ...encodings[random(6)]!];
        return Buffer.concat([Buffer.from(head), Buffer.alloc(random(3) === 0 ? random(200_000) : random(200))]);
      }
    }
  }

  return {
    connect: () => net.connect({ path }),
    get said() {
      return said;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
