# expected: load_error memory died timeout

# include: none.py
for x in y:
 for x in y:
  for x in y:
   for x in y:
    for x in y:
     for x in y:
      for x in y:
       for x in y:
        for x in y:
         for x in y:
          for x in y:
           for x in y:
            for x in y:
             for x in y:
              for x in y:
               for x in y:
                for x in y:
                 for x in y:
                  for x in y:
                   for x in y:
                    for x in y:
                     for x in y:
                      for x in y:
                       for x in y:
                        for x in y:
                         for x in y:
                          for x in y:
                           for x in y:
                            for x in y:
                             for x in y:
