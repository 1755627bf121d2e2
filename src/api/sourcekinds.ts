import { z } from 'zod';
import { cel, PATH_RULES } from './cel.ts';
import { gitURL, localReference } from './common.ts';

/** Schema of spec.github. */
export const github = z
  .object({
    repository: z
      .string()
      .max(256)
      .meta({
        description: 'Owner and name of the repository, such as acme/skills.',
        ...cel({
          rule: "self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_.][A-Za-z0-9_.-]*$') && !self.matches('/[.]{1,2}$')",
          message: 'must be <owner>/<name>, such as acme/skills',
        }),
      }),
    baseURL: z
      .string()
      .max(512)
      .optional()
      .meta({
        description: 'Address of a GitHub Enterprise server. https://github.com when absent.',
        ...cel({
          rule: "self.matches('^https?://([A-Za-z0-9][A-Za-z0-9.-]*|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?$') && !self.matches('/[.-]')",
          message:
            'must be an http:// or https:// address without user name, query or "..", such as https://github.example.com',
        }),
      }),
  })
  .meta({ description: 'A repository on GitHub or GitHub Enterprise; set with type github.' });

/** Schema of spec.gitSubdir. */
export const gitSubdir = z
  .object({
    url: gitURL,
    path: z
      .string()
      .max(1024)
      .meta({
        description: 'Directory in the repository that holds plugins/.',
        ...cel(...PATH_RULES),
      }),
  })
  .meta({ description: 'A directory of a Git repository; set with type git-subdir.' });

/** Schema of spec.archive: an address with its sum, or the key of an upload. */
export const archive = z
  .object({
    url: z
      .string()
      .max(2048)
      .optional()
      .meta({
        description: 'Address of a tar.gz or zip file.',
        ...cel(
          {
            rule: "self.matches('^https?://([A-Za-z0-9][A-Za-z0-9.-]*|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?/[^\\\\x00-\\\\x20\\\\x7f\\\\\\\\#]+$') || self.matches('^https?://[^/?#]*@')",
            message: 'must be an https:// or http:// address of a file, such as https://example.com/skills.tar.gz',
          },
          {
            rule: "!self.matches('^https?://[^/?#]*@')",
            message:
              'must not carry a user name or password; put username and password into a Secret and name it in secretRef.name',
          },
        ),
      }),
    sha256: z
      .string()
      .max(64)
      .optional()
      .meta({
        description: 'SHA-256 of the file at url.',
        ...cel({
          rule: "self.matches('^[0-9a-f]{64}$')",
          message: 'must be 64 lower-case hex digits; sha256sum prints them',
        }),
      }),
    objectKey: z
      .string()
      .max(512)
      .optional()
      .meta({
        description: 'Key of an upload of this namespace: uploads/<namespace>/<sha256>.',
        ...cel({
          rule: "self.matches('^uploads/[a-z0-9]([-a-z0-9]*[a-z0-9])?/[0-9a-f]{64}$')",
          message: 'must be the key that the upload answered: uploads/<namespace>/<sha256>',
        }),
      }),
  })
  .meta({
    description: 'A tar.gz or zip file; set with type archive.',
    ...cel({
      rule: 'has(self.objectKey) ? !has(self.url) && !has(self.sha256) : has(self.url) && has(self.sha256)',
      message: 'must set either url and sha256, or objectKey alone',
    }),
  });

/** Schema of spec.inline. */
export const inline = z
  .object({
    configMapRef: localReference('ConfigMap'),
    items: z
      .array(
        z.object({
          key: z
            .string()
            .min(1)
            .max(253)
            .meta({
              description: 'Key in the ConfigMap.',
              ...cel({
                rule: "self.matches('^[-._a-zA-Z0-9]+$')",
                message: 'must be a ConfigMap key of letters, digits, "-", "_" and "."',
              }),
            }),
          path: z
            .string()
            .max(512)
            .meta({ description: 'Path of the file.', ...cel(...PATH_RULES) }),
          mode: z
            .int()
            .optional()
            .meta({
              format: 'int32',
              description: 'Mode of the file: 0644 or 0755 (420 or 493 in decimal). 0644 when absent.',
              ...cel({
                rule: 'self == 420 || self == 493',
                message: 'must be 0644 or 0755 (420 or 493 in decimal, as JSON needs it)',
              }),
            }),
        }),
      )
      .min(1)
      .max(500)
      .meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['path'],
        description: 'Which key of the ConfigMap becomes which file.',
      }),
  })
  .meta({ description: 'Files out of a ConfigMap; set with type inline.' });
