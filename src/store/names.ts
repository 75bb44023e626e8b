import { errors } from '../errors.ts';
import { uniqueViolation } from './db.ts';

/** Writes something that has a name. `index` is the unique index of its names; a name that is taken is refused. */
export async function unlessTaken<T>(
  { index, thing, name }: { index: string; thing: string; name: string | null },
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (uniqueViolation(error) === index) throw errors.already_exists({ thing, name: name ?? '' });
    throw error;
  }
}
