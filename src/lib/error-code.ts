/** The code that Node puts on system errors (`ENOENT`) and `pg` on refusals (`57P03`). */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
