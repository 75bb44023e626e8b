export const root: string;
export function listen(
  program: string,
  args: string[],
  options?: { cwd?: string },
): Promise<{ code: number; output: string }>;
