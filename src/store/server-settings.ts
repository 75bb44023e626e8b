import { PORT } from './socket.ts';

const SETTINGS = {
  // Only a socket, in the directory that only the server's user and root may enter. PostgreSQL's working directory is its
  // data directory, so '.' is that directory, however long its path.
  listen_addresses: '',
  port: String(PORT),
  unix_socket_directories: '.',
  unix_socket_permissions: '0700',
  // A committed write is on disk.
  fsync: 'on',
  synchronous_commit: 'on',
  // One service on one machine: little memory, few processes.
  max_connections: '100',
  shared_buffers: '32MB',
  max_wal_size: '256MB',
  io_method: 'sync',
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Log the server's activity, but not refused statements: the client gets those errors, and they may contain secrets.
  log_min_messages: 'log',
  log_checkpoints: 'off',
};

/** On the command line and not in postgresql.conf, so that a new release brings its own settings. */
export const settingsArgs = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
