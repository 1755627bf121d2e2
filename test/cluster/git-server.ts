import { spawn } from 'node:child_process';
import { timingSafeEqual } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { constants, gunzipSync } from 'node:zlib';

interface GitServerOptions {
  /** Address to listen on. */
  address: string;
  /** Directory of bare repositories. */
  root: string;
  /** File that gets one line `<service> <path>` per request. */
  accessLog: string;
  /** Git configuration file for the server side; nothing else of the machine's configuration is read. */
  settings: string;
  username: string;
  password: string;
  bearerToken: string;
}

const CGI_HEADER_LIMIT = 64 * 1024;

const same = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

/** The path of the repository in a request: up to and including `.git`, else the whole path. */
export const repositoryOf = (path: string): string => /^.*?\.git(?=\/|$)/.exec(path)?.[0] ?? path;

/**
 * What a request to Git asks for: `info/refs` (the advertisement that begins every exchange), the command of protocol version 2
 * (`ls-refs`, `fetch`), else `upload-pack` (older protocols) or the file asked for.
 */
export function serviceOf(path: string, firstBytes: Buffer): string {
  if (path.endsWith('/info/refs')) return 'info/refs';
  if (!path.endsWith('/git-upload-pack')) return path.slice(path.lastIndexOf('/') + 1);
  // A packet of protocol version 2: four hexadecimal digits of length, then the command.
  return /^[0-9a-f]{4}command=([a-z-]+)/.exec(firstBytes.toString('latin1'))?.[1] ?? 'upload-pack';
}

/** Beginning of a request body, unpacked when it came with gzip. */
function plain(chunk: Buffer, encoding: string | undefined): Buffer {
  if (encoding !== 'gzip') return chunk;
  try {
    return gunzipSync(chunk, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return Buffer.alloc(0);
  }
}

/** Splits what a CGI program has written so far into headers and the start of the body; undefined while incomplete. */
export function parseCgi(head: Buffer): { status: number; headers: [string, string][]; rest: Buffer } | undefined {
  const text = head.toString('latin1');
  const end = /\r?\n\r?\n/.exec(text);
  if (!end) return undefined;
  let status = 200;
  const headers: [string, string][] = [];
  for (const line of text.slice(0, end.index).split(/\r?\n/)) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
    if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
    else headers.push([name, value]);
  }
  return { status, headers, rest: head.subarray(end.index + end[0].length) };
}

/**
 * A small Git host for tests. Paths: `/pub/<repo>.git` for everybody, `/private/<repo>.git` with basic or bearer credentials,
 * `/silent/…` never answers, `/redirect/…` sends to the same below `/pub` under another host name, `/status/<code>/…` answers
 * that code (429 and 503 with `Retry-After: 1`).
 */
export class GitServer {
  readonly #options: GitServerOptions;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(options: GitServerOptions) {
    this.#options = options;
  }

  /** Listens on a port of its address, with TLS when a certificate is given; returns the base URL. */
  async listen(port: number, tls?: { cert: Buffer; key: Buffer }): Promise<string> {
    const listener: RequestListener = (request, response) => this.#serve(request, response, tls !== undefined);
    const server = tls ? createTlsServer(tls, listener) : createServer(listener);
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#servers.push(server);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject);
    server.listen(port, this.#options.address, resolve);
    await promise;
    return `${tls ? 'https' : 'http'}://${this.#options.address}:${(server.address() as AddressInfo).port}`;
  }

  /** Stops listening and ends every connection. */
  async close(): Promise<void> {
    const closed = this.#servers.splice(0).map(async (server) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      await promise;
    });
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }

  #log(service: string, path: string): void {
    // Synchronous, so that the line is there before the client has its answer.
    appendFileSync(this.#options.accessLog, `${service} ${path}\n`);
  }

  #serve(request: IncomingMessage, response: ServerResponse, isTls: boolean): void {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    const [, area = '', ...rest] = url.pathname.split('/');
    switch (area) {
      case 'pub':
      case 'private':
        if (area === 'private' && !this.#isAllowed(request.headers.authorization)) {
          this.#log('unauthorized', repositoryOf(url.pathname));
          response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end('credentials are needed\n');
          return;
        }
        this.#backend(request, response, url, `/${rest.join('/')}`);
        return;
      case 'silent':
        this.#log('silent', url.pathname);
        return;
      case 'redirect':
        this.#log('redirect', url.pathname);
        response
          .writeHead(302, {
            location: `${isTls ? 'https' : 'http'}://localhost:${request.socket.localPort}/pub/${rest.join('/')}${url.search}`,
          })
          .end();
        return;
      case 'status':
        this.#status(response, Number(rest[0]), url.pathname);
        return;
      default:
        response.writeHead(404).end('not found\n');
    }
  }

  #status(response: ServerResponse, code: number, path: string): void {
    const valid = Number.isInteger(code) && code >= 200 && code < 600 ? code : 400;
    if (!path.endsWith('/ready')) this.#log('status', path);
    const headers = valid === 429 || valid === 503 ? { 'retry-after': '1' } : {};
    response.writeHead(valid, headers).end(valid === 204 ? undefined : `answers ${valid}\n`);
  }

  #isAllowed(authorization: string | undefined): boolean {
    const [scheme = '', value = ''] = (authorization ?? '').split(' ');
    if (scheme.toLowerCase() === 'bearer') return same(value, this.#options.bearerToken);
    if (scheme.toLowerCase() !== 'basic') return false;
    const { username, password } = this.#options;
    return same(Buffer.from(value, 'base64').toString('utf8'), `${username}:${password}`);
  }

  #backend(request: IncomingMessage, response: ServerResponse, url: URL, pathInfo: string): void {
    const child = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: this.#cgiEnvironment(request, url, pathInfo),
    });
    child.on('error', () => response.destroy());
    child.stdin.on('error', () => undefined);
    response.on('close', () => child.kill('SIGKILL'));
    this.#forwardBody(request, child.stdin, url.pathname);

    let head: Buffer = Buffer.alloc(0);
    const onHead = (chunk: Buffer) => {
      head = Buffer.concat([head, chunk]);
      const parsed = parseCgi(head);
      if (!parsed) {
        if (head.length > CGI_HEADER_LIMIT) response.destroy();
        return;
      }
      child.stdout.off('data', onHead);
      response.writeHead(parsed.status, parsed.headers.flat());
      response.write(parsed.rest);
      child.stdout.pipe(response);
    };
    child.stdout.on('data', onHead);
    child.stdout.on('end', () => {
      if (!response.headersSent) response.writeHead(500).end('git http-backend gave no answer\n');
    });
  }

  /** Sends the request body on; its first bytes tell the service for the log. */
  #forwardBody(request: IncomingMessage, to: NodeJS.WritableStream, path: string): void {
    const log = (chunk: Buffer) =>
      this.#log(serviceOf(path, plain(chunk, request.headers['content-encoding'])), repositoryOf(path));
    request.once('readable', () => {
      const chunk = request.read() as Buffer | null;
      log(chunk ?? Buffer.alloc(0));
      if (chunk) to.write(chunk);
      request.pipe(to);
    });
  }

  #cgiEnvironment(request: IncomingMessage, url: URL, pathInfo: string): Record<string, string> {
    const { headers, method = 'GET' } = request;
    return {
      PATH: process.env.PATH ?? '',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: this.#options.settings,
      GIT_PROJECT_ROOT: this.#options.root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: decodeURIComponent(pathInfo),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: method,
      REMOTE_ADDR: '127.0.0.1',
      CONTENT_TYPE: headers['content-type'] ?? '',
      ...(headers['content-length'] === undefined ? {} : { CONTENT_LENGTH: headers['content-length'] }),
      ...(headers['content-encoding'] === undefined ? {} : { HTTP_CONTENT_ENCODING: headers['content-encoding'] }),
      ...(typeof headers['git-protocol'] === 'string' ? { GIT_PROTOCOL: headers['git-protocol'] } : {}),
    };
  }
}
