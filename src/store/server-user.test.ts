import { expect, test } from 'vitest';
import { parsePasswd } from './server-user.ts';

test('reads names and numbers from the user file and ignores invalid lines', () => {
  const text =
    'root:x:0:0:root:/root:/bin/bash\n# a comment\n+::::::\npostgres:x:101:104:PostgreSQL,,,:/var/lib:/bin/bash\n';
  expect(parsePasswd(text).find(({ name }) => name === 'postgres')).toEqual({ name: 'postgres', uid: 101, gid: 104 });
  expect(parsePasswd(text).map(({ name }) => name)).not.toContain('# a comment');
});
