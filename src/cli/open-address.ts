import { spawn } from 'node:child_process';

/** Opens an address with what this machine uses for that. The address is one word of a command line, never a line for a shell. */
export async function openAddress(address: string): Promise<void> {
  const [program, ...words] = { darwin: ['open'], win32: ['explorer'] }[process.platform as string] ?? ['xdg-open'];
  await new Promise<void>((resolve) => {
    const child = spawn(program!, [...words, address], { stdio: 'ignore', detached: true });
    child.on('error', () => {
      process.stderr.write(`There is no ${program} here: open the address yourself.\n`);
      resolve();
    });
    child.on('spawn', () => {
      child.unref();
      resolve();
    });
  });
}
