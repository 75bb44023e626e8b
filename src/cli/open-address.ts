import { spawn } from 'node:child_process';

/** Opens an address with the default program of this machine. The address is one argument, and is not parsed by a shell. */
export async function openAddress(address: string): Promise<void> {
  const [program, ...words] = { darwin: ['open'], win32: ['explorer'] }[process.platform as string] ?? ['xdg-open'];
  await new Promise<void>((resolve) => {
    const child = spawn(program!, [...words, address], { stdio: 'ignore', detached: true });
    child.on('error', () => {
      process.stderr.write(`There is no ${program} on this machine: open the address yourself.\n`);
      resolve();
    });
    child.on('spawn', () => {
      child.unref();
      resolve();
    });
  });
}
